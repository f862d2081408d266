package tiers

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/oncepay/oncepay/idempotency"
	"github.com/oncepay/oncepay/idempotency/redisstore"
)

// globs are the characters that have a meaning in a pattern of KEYS.
var globs = strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`, `]`, `\]`, `^`, `\^`)

// readRecord finds the record of whichever account uses the key, or returns nil. KEYS looks at
// every key of the server, which is for development alone.
func readRecord(ctx context.Context, addr, key string) (*Record, error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	client := redis.NewClient(&redis.Options{Addr: addr, MaxRetries: -1, ContextTimeoutEnabled: true})
	defer func() { _ = client.Close() }()
	names, err := client.Keys(ctx, redisstore.DefaultPrefix+"*:"+globs.Replace(key)).Result()
	if err != nil {
		return nil, fmt.Errorf("find the record: %w", err)
	}
	if len(names) == 0 {
		return nil, nil
	}
	raw, err := client.Get(ctx, names[0]).Bytes()
	if errors.Is(err, redis.Nil) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the record: %w", err)
	}
	left, err := client.PTTL(ctx, names[0]).Result()
	if err != nil {
		return nil, fmt.Errorf("read the record's time: %w", err)
	}
	var kept idempotency.Record
	if err := kept.UnmarshalBinary(raw); err != nil {
		return nil, err
	}
	record := &Record{Account: kept.Scope, Status: string(kept.Status), Fingerprint: kept.Fingerprint.String(),
		Owner: string(kept.Owner), TimeLeft: left}
	if kept.Status != idempotency.StatusInProgress {
		record.ResponseStatus, record.BodyHash = kept.Response.StatusCode, hashOf(kept.Response.Body)
	}
	return record, nil
}
