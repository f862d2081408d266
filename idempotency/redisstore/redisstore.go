// Package redisstore keeps idempotency records in Redis 7.0 or later, or a compatible server
// (see [CheckServer]), shared by all instances of a service. Every step is one round trip:
// acquiring a key is a SET with NX and GET, the other steps are one script each that checks
// the owner.
//
// The keys are readable, idempotency:<scope>:<key>, and so are their values: a line of JSON,
// then the raw bytes of the response body. [WithSecrets] signs them.
//
// Under load the commands of concurrent callers share round trips; a command never waits for
// others while fewer than four round trips are under way. In a cluster each is sent alone.
//
// A client for this store must not retry by itself, because a retried command may find the
// effect of its first attempt; [Open] makes such a client. The store repeats a step once, and
// recognizes its own owner.
//
// A URL names a single server, Sentinels or a cluster; see [Options]. The server's user needs
// only [ACLRules].
//
// Run the server with maxmemory-policy noeviction if nothing below the handlers would notice a
// second execution: an evicted record is a forgotten key.
//
// Waiters ([idempotency.Policy].Wait) are woken through the channel idempotency:changes, over
// one connection that is opened for the first of them. If the user may not use the channel,
// waiters look about once a second.
package redisstore

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/oncepay/oncepay/idempotency"
)

// DefaultPrefix begins every key.
const DefaultPrefix = "idempotency:"

// Store is an [idempotency.Store]. It is safe for concurrent use.
type Store struct {
	client     redis.UniversalClient
	batches    batcher
	prefix     string
	generation func() string
	seals      []*seal
	unsigned   bool // are accepted, too
	listener
}

var (
	_ idempotency.Store   = (*Store)(nil)
	_ idempotency.Watcher = (*Store)(nil)
)

// Option configures a [Store].
type Option func(*Store)

// WithPrefix sets what every key begins with, for services that share a server. The default is
// [DefaultPrefix].
func WithPrefix(prefix string) Option {
	return func(s *Store) { s.prefix = prefix }
}

// WithGeneration makes records belong to a generation, which their keys name:
// idempotency:<generation>:<scope>:<key>. When it changes, all earlier records count as absent.
// That is for a database that may lose what records tell of: let the generation name its history,
// such as PostgreSQL's timeline, which a failover changes. The function is called for each step,
// by many goroutines. An empty generation is left out.
func WithGeneration(generation func() string) Option {
	return func(s *Store) { s.generation = generation }
}

// New returns a store that uses client. The caller closes the client. New panics if the
// client is nil.
func New(client redis.UniversalClient, opts ...Option) *Store {
	if client == nil {
		panic("redisstore: New needs a client")
	}
	s := &Store{client: client, batches: batcher{client: client}, prefix: DefaultPrefix, generation: func() string { return "" }}
	for _, opt := range opts {
		opt(s)
	}
	return s
}

// Acquire implements [idempotency.Store] with SET NX GET, which returns nil or the value that is
// there (https://redis.io/docs/latest/commands/set/).
func (s *Store) Acquire(ctx context.Context, pending idempotency.Record, lease time.Duration) (*idempotency.Record, error) {
	raw, free, err := s.setUnlessThere(ctx, pending, lease)
	if err != nil || free {
		return nil, err
	}
	return s.met(raw, pending)
}

// setUnlessThere returns the bytes that are there, or that the key was free and is held now.
func (s *Store) setUnlessThere(ctx context.Context, pending idempotency.Record, lease time.Duration) (raw string, free bool, err error) {
	data, err := s.encode(pending, lease)
	if err != nil {
		return "", false, fmt.Errorf("acquire: %w", err)
	}
	raw, err = s.text(ctx, "set", s.keyOf(pending.Scope, pending.Key), data, "px", milliseconds(lease), "nx", "get")
	switch {
	case errors.Is(err, redis.Nil):
		return "", true, nil
	case err != nil:
		return "", false, fmt.Errorf("acquire: %w", translate(err))
	}
	return raw, false, nil
}

// met is the record that is there, or nil if it is our own.
func (s *Store) met(raw string, pending idempotency.Record) (*idempotency.Record, error) {
	existing, err := s.decode(pending.Scope, pending.Key, raw)
	if err != nil {
		return nil, fmt.Errorf("acquire: %w", err)
	}
	if existing.Owner == pending.Owner && existing.Status == idempotency.StatusInProgress {
		return nil, nil // our own first attempt, whose reply was lost
	}
	return &existing, nil
}

// Extend implements [idempotency.Store].
func (s *Store) Extend(ctx context.Context, pending idempotency.Record, lease time.Duration) error {
	data, err := s.encode(pending, lease)
	if err != nil {
		return fmt.Errorf("extend: %w", err)
	}
	return s.run(ctx, "extend", extend, pending, data, milliseconds(lease))
}

// Complete implements [idempotency.Store].
func (s *Store) Complete(ctx context.Context, done idempotency.Record, ttl time.Duration) error {
	data, err := s.encode(done, ttl)
	if err != nil {
		return fmt.Errorf("complete: %w", err)
	}
	return s.run(ctx, "complete", complete, done, data, milliseconds(ttl), s.channel())
}

// Release implements [idempotency.Store].
func (s *Store) Release(ctx context.Context, pending idempotency.Record) error {
	return s.run(ctx, "release", release, pending, s.channel())
}

// Forget deletes the record of a key, finished or not, and returns nil also if there is none. The
// attempt that holds the key loses it, and keeps no answer. It is for erasing personal data: where
// there is an authority, erase the answer there first, so that nobody puts it back.
func (s *Store) Forget(ctx context.Context, scope, key string) error {
	err := repeated(ctx, func() error { return s.client.Del(ctx, s.keyOf(scope, key)).Err() })
	if err != nil {
		return fmt.Errorf("forget: %w", translate(err))
	}
	return nil
}

func (s *Store) run(ctx context.Context, name string, script script, r idempotency.Record, args ...any) error {
	args = append([]any{"evalsha", script.hash, 1, s.keyOf(r.Scope, r.Key), string(r.Owner)}, args...)
	reply, err := s.text(ctx, args...)
	if redis.HasErrorPrefix(err, "NOSCRIPT") {
		args[0], args[1] = "eval", script.source
		reply, err = s.text(ctx, args...)
	}
	if err == nil {
		err = errorOf(reply)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", name, translate(err))
	}
	return nil
}

// text sends a command whose reply is a string, and sends it once more if the reply was lost.
func (s *Store) text(ctx context.Context, args ...any) (reply string, err error) {
	err = repeated(ctx, func() error {
		cmd := redis.NewStringCmd(ctx, args...) // a new one, because a lost one may still be written
		err := s.batches.do(ctx, cmd)
		if err == nil {
			reply = cmd.Val()
		}
		return err
	})
	return reply, err
}

// scopeEscaper makes the end of the scope unambiguous: a key may contain colons.
var scopeEscaper = strings.NewReplacer("%", "%25", ":", "%3A")

func (s *Store) keyOf(scope, key string) string {
	tag, generation := "", s.generation()
	if generation != "" {
		generation += ":"
	}
	scope = scopeEscaper.Replace(scope)
	if strings.Contains(scope, "{") || strings.Contains(key, "{") {
		// A cluster takes the slot from the first text in braces, which the client would choose
		// (Redis manual, "Cluster specification", hash tags).
		hash := fnv.New64a()
		_, _ = hash.Write([]byte(scope + ":" + key))
		tag = fmt.Sprintf("{%016x}", hash.Sum64())
	}
	return s.prefix + generation + tag + scope + ":" + key
}

func (s *Store) encode(r idempotency.Record, lifetime time.Duration) ([]byte, error) {
	r.ExpiresAt = time.Now().Add(lifetime)
	record, err := r.MarshalBinary()
	if err != nil || len(s.seals) == 0 {
		return record, err
	}
	return s.seals[0].sign(s.keyOf(r.Scope, r.Key), record), nil
}

// milliseconds rounds to Redis's resolution. An expiry must not become zero, which means none.
func milliseconds(d time.Duration) int64 { return max(d.Milliseconds(), 1) }
