package tiers

import (
	"context"
	"crypto/sha256"
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
func readRecord(ctx context.Context, addr, key string) (newest *Record, err error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	client := redis.NewClient(&redis.Options{Addr: addr, MaxRetries: -1, ContextTimeoutEnabled: true})
	defer func() { _ = client.Close() }()
	names, err := client.Keys(ctx, redisstore.DefaultPrefix+"*:"+globs.Replace(key)).Result()
	if err != nil {
		return nil, fmt.Errorf("find the record: %w", err)
	}
	var created time.Time
	for _, name := range names {
		var kept idempotency.Record
		left, err := client.PTTL(ctx, name).Result()
		if err == nil {
			err = client.Get(ctx, name).Scan(&kept)
		}
		if errors.Is(err, redis.Nil) {
			continue // it has just ended
		}
		if err != nil {
			return nil, fmt.Errorf("read the record: %w", err)
		}
		// The pattern also matches longer keys that end like this one.
		if kept.Key != key || kept.CreatedAt.Before(created) {
			continue
		}
		created = kept.CreatedAt
		newest = &Record{Account: kept.Scope, Status: string(kept.Status), Fingerprint: kept.Fingerprint.String(),
			Owner: string(kept.Owner), TimeLeft: left}
		if kept.Status != idempotency.StatusInProgress {
			newest.ResponseStatus, newest.BodyHash = kept.Response.StatusCode, fmt.Sprintf("%x", sha256.Sum256(kept.Response.Body))
		}
	}
	return newest, nil
}
