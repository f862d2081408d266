package tiers

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/oncepay/oncepay/idempotency"
	"github.com/oncepay/oncepay/idempotency/redisstore"
)

// globs are the characters that have a meaning in a pattern of KEYS.
var globs = strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`, `]`, `\]`, `^`, `\^`)

// readRecord finds the newest record of whichever account uses the key, or returns nil: there are
// older ones after PostgreSQL has lost changes. KEYS looks at every key of the server, which is for
// development alone.
func readRecord(ctx context.Context, addr, key string) (*Record, error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	client := redis.NewClient(&redis.Options{Addr: addr, MaxRetries: -1, ContextTimeoutEnabled: true})
	defer func() { _ = client.Close() }()
	names, err := client.Keys(ctx, redisstore.DefaultPrefix+"*:"+globs.Replace(key)).Result()
	if err != nil {
		return nil, fmt.Errorf("find the record: %w", err)
	}
	var kept idempotency.Record
	var left time.Duration
	for _, name := range names {
		found, lives, err := readRecordOf(ctx, client, name)
		if err != nil {
			return nil, err
		}
		// The pattern also matches longer keys that end like this one.
		if found.Key == key && (kept.Key == "" || found.CreatedAt.After(kept.CreatedAt)) {
			kept, left = found, lives
		}
	}
	if kept.Key == "" {
		return nil, nil
	}
	record := &Record{Account: kept.Scope, Status: string(kept.Status), Fingerprint: kept.Fingerprint.String(),
		Owner: string(kept.Owner), TimeLeft: left}
	if kept.Status != idempotency.StatusInProgress {
		record.ResponseStatus, record.BodyHash = kept.Response.StatusCode, hashOf(kept.Response.Body)
	}
	return record, nil
}

// readRecordOf reads the record of a Redis key, and how long it will be kept. The record is empty
// if there is none.
func readRecordOf(ctx context.Context, client *redis.Client, name string) (record idempotency.Record, left time.Duration, err error) {
	raw, err := client.Get(ctx, name).Bytes()
	if errors.Is(err, redis.Nil) {
		return record, 0, nil
	}
	if err != nil {
		return record, 0, fmt.Errorf("read the record: %w", err)
	}
	if left, err = client.PTTL(ctx, name).Result(); err != nil {
		return record, 0, fmt.Errorf("read the record's time: %w", err)
	}
	return record, left, record.UnmarshalBinary(raw)
}
