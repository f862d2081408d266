// Package redisstore keeps idempotency records in Redis 7.0 or later (or a
// server that speaks the same, see [CheckServer]), shared by all instances of a
// service. Every step is one round trip: acquiring a key is a SET with NX and
// GET, the other steps are one script each that checks the owner.
//
// The keys are readable, idempotency:<scope>:<key>, and so are their values: a
// line of JSON, then the response body's own bytes.
//
// A client for it should not retry by itself, as a retried command may meet the
// effect of its first attempt; [Open] makes one that doesn't. The store repeats
// a step once, by itself and knowing its owner.
//
// A server may be one alone, one that Sentinels appoint, or a cluster; see
// [Options]. Its user needs no more than [ACLRules].
//
// Run the server with maxmemory-policy noeviction where nothing below the
// handlers would notice a second execution: an evicted record is a forgotten
// one.
//
// Those who wait for a key ([idempotency.Policy].Wait) are woken over the channel
// idempotency:changes, through one connection that is opened when the first of
// them comes. Where the user may not use it, they look every second or so.
package redisstore

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/oncepay/oncepay/idempotency"
)

// DefaultPrefix begins every key.
const DefaultPrefix = "idempotency:"

// Store is an [idempotency.Store]. It is safe for concurrent use.
type Store struct {
	client redis.UniversalClient
	prefix string
	listener
}

var (
	_ idempotency.Store    = (*Store)(nil)
	_ idempotency.Notifier = (*Store)(nil)
)

// Option configures a [Store].
type Option func(*Store)

// WithPrefix replaces [DefaultPrefix], for services that share a server.
func WithPrefix(prefix string) Option {
	return func(s *Store) { s.prefix = prefix }
}

// New makes a store on a client, which stays the caller's to close.
func New(client redis.UniversalClient, opts ...Option) *Store {
	s := &Store{client: client, prefix: DefaultPrefix}
	for _, opt := range opts {
		opt(s)
	}
	return s
}

// Acquire implements [idempotency.Store] by SET NX GET, which answers nil or
// what is there (https://redis.io/docs/latest/commands/set/).
func (s *Store) Acquire(ctx context.Context, pending idempotency.Record, lease time.Duration) (*idempotency.Record, error) {
	data, err := encode(pending, lease)
	if err != nil {
		return nil, fmt.Errorf("acquire: %w", err)
	}
	var raw string
	err = repeated(ctx, func() (err error) {
		args := redis.SetArgs{Mode: "NX", Get: true, TTL: milliseconds(lease)}
		raw, err = s.client.SetArgs(ctx, s.keyOf(pending.Scope, pending.Key), data, args).Result()
		return err
	})
	if errors.Is(err, redis.Nil) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("acquire: %w", translate(err))
	}
	var existing idempotency.Record
	if err := existing.UnmarshalBinary([]byte(raw)); err != nil {
		return nil, fmt.Errorf("acquire: %w", err)
	}
	if existing.Owner == pending.Owner && existing.Status == idempotency.StatusInProgress {
		return nil, nil // our own first attempt, whose reply was lost
	}
	return &existing, nil
}

// Extend implements [idempotency.Store].
func (s *Store) Extend(ctx context.Context, pending idempotency.Record, lease time.Duration) error {
	data, err := encode(pending, lease)
	if err != nil {
		return fmt.Errorf("extend: %w", err)
	}
	return s.run(ctx, "extend", extend, pending, data, milliseconds(lease).Milliseconds())
}

// Complete implements [idempotency.Store].
func (s *Store) Complete(ctx context.Context, done idempotency.Record, ttl time.Duration) error {
	data, err := encode(done, ttl)
	if err != nil {
		return fmt.Errorf("complete: %w", err)
	}
	return s.run(ctx, "complete", complete, done, data, milliseconds(ttl).Milliseconds(), s.channel())
}

// Release implements [idempotency.Store].
func (s *Store) Release(ctx context.Context, pending idempotency.Record) error {
	return s.run(ctx, "release", release, pending, s.channel())
}

func (s *Store) run(ctx context.Context, name string, script *redis.Script, r idempotency.Record, args ...any) error {
	var reply string
	err := repeated(ctx, func() (err error) {
		reply, err = script.Run(ctx, s.client, []string{s.keyOf(r.Scope, r.Key)}, append([]any{string(r.Owner)}, args...)...).Text()
		return err
	})
	if err == nil {
		err = verdict(reply)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", name, translate(err))
	}
	return nil
}

// scopeEscaper keeps the scope's end visible: a key may contain colons.
var scopeEscaper = strings.NewReplacer("%", "%25", ":", "%3A")

func (s *Store) keyOf(scope, key string) string {
	return s.prefix + scopeEscaper.Replace(scope) + ":" + key
}

func encode(r idempotency.Record, lifetime time.Duration) ([]byte, error) {
	r.ExpiresAt = time.Now().Add(lifetime)
	return r.MarshalBinary()
}

// milliseconds is Redis's resolution; no expiry may round down to none.
func milliseconds(d time.Duration) time.Duration {
	return max(d.Truncate(time.Millisecond), time.Millisecond)
}
