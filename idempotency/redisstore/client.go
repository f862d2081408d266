package redisstore

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/oncepay/oncepay/idempotency"
)

// Timeouts of [Options]. A step and its one repetition stay under the
// middleware's two seconds even when each phase takes all of its time.
const (
	// DialTimeout covers a TLS handshake within a region.
	DialTimeout = 500 * time.Millisecond
	// ReadTimeout is a hundred times a slow reply's time: beyond it the reply is
	// taken for lost.
	ReadTimeout = 250 * time.Millisecond
	// WriteTimeout ends writes into a connection whose peer vanished.
	WriteTimeout = 250 * time.Millisecond
	// PoolTimeout bounds the wait for a connection: when all of them are busy
	// for so long, the server doesn't keep up, and more waiting won't help.
	PoolTimeout = 250 * time.Millisecond
)

// Options reads a URL, redis://user:password@host:port/db or rediss:// for TLS,
// into options fit for a [Store], to be tuned before redis.NewClient. Timeouts
// that the URL sets by its query (see redis.ParseURL) are respected; retries
// are off in any case.
func Options(url string) (*redis.Options, error) {
	o, err := redis.ParseURL(url)
	if err != nil {
		return nil, fmt.Errorf("parse redis url: %w", err)
	}
	orElse(&o.DialTimeout, DialTimeout)
	orElse(&o.ReadTimeout, ReadTimeout)
	orElse(&o.WriteTimeout, WriteTimeout)
	orElse(&o.PoolTimeout, PoolTimeout)
	o.ContextTimeoutEnabled = true
	o.MaxRetries = -1   // 0 would mean three
	o.DialerRetries = 1 // a server that is down should fail now, not after five dials
	o.DisableIdentity = true
	o.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	return o, nil
}

func orElse(d *time.Duration, otherwise time.Duration) {
	if *d == 0 {
		*d = otherwise
	}
}

// Open makes a client with [Options]. It doesn't connect yet.
func Open(url string) (*redis.Client, error) {
	o, err := Options(url)
	if err != nil {
		return nil, err
	}
	return redis.NewClient(o), nil
}

// oldestMajor is the first version that takes SET with both NX and GET.
const oldestMajor = 7

// CheckServer refuses a server that can't keep records: one older than Redis
// 7.0, or one that doesn't take SET with NX and GET. Call it when starting. It
// writes one key that expires after a second.
func CheckServer(ctx context.Context, client redis.UniversalClient) error {
	info, err := client.Info(ctx, "server").Result()
	switch {
	case redis.HasErrorPrefix(err, "NOPERM"): // the probe alone has to do
	case err != nil:
		return fmt.Errorf("check redis: %w", translate(err))
	default:
		if err := checkVersion(info); err != nil {
			return err
		}
	}
	return probe(ctx, client)
}

func checkVersion(info string) error {
	for line := range strings.Lines(info) {
		version, found := strings.CutPrefix(strings.TrimSpace(line), "redis_version:")
		if !found {
			continue
		}
		major, _, _ := strings.Cut(version, ".")
		if n, err := strconv.Atoi(major); err == nil && n < oldestMajor {
			return fmt.Errorf("check redis: version %s is too old, %d.0 is needed for SET with NX and GET", version, oldestMajor)
		}
	}
	return nil
}

// probe sets a new key twice: the second time must answer with the first value.
func probe(ctx context.Context, client redis.UniversalClient) error {
	key, args := DefaultPrefix+"probe:"+string(idempotency.NewOwner()), redis.SetArgs{Mode: "NX", Get: true, TTL: time.Second}
	if err := client.SetArgs(ctx, key, "first", args).Err(); err != nil && !errors.Is(err, redis.Nil) {
		return fmt.Errorf("check redis: SET NX GET: %w", translate(err))
	}
	kept, err := client.SetArgs(ctx, key, "second", args).Result()
	if err != nil {
		return fmt.Errorf("check redis: SET NX GET: %w", translate(err))
	}
	if kept != "first" {
		return fmt.Errorf("check redis: SET NX GET answered %q instead of what was there", kept)
	}
	return nil
}
