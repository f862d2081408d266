package redisstore

import (
	"context"
	"errors"
	"fmt"

	"github.com/redis/go-redis/v9"

	"github.com/oncepay/oncepay/idempotency"
)

// repeated takes a step, and takes it once more when its reply was lost: each
// step succeeds when the same owner takes it again. An answer of the server,
// even an error, is not repeated, nor is anything once the caller gave up.
func repeated(ctx context.Context, step func() error) error {
	err := step()
	if err == nil || isReply(err) || errors.Is(err, redis.ErrPoolTimeout) || ctx.Err() != nil {
		return err
	}
	return step()
}

// isReply tells errors that the server answered with, redis.Nil included, from
// those of the way there and back.
func isReply(err error) bool {
	var reply redis.Error
	return errors.As(err, &reply)
}

// translate is where Redis's errors end: above it there are only the library's.
// All that isn't about the record itself means that the server can't serve us
// now: timeouts, OOM, READONLY after a failover, LOADING, no permission.
func translate(err error) error {
	switch {
	case errors.Is(err, idempotency.ErrLost), errors.Is(err, idempotency.ErrCorrupt), errors.Is(err, idempotency.ErrUnavailable):
		return err
	case redis.HasErrorPrefix(err, "WRONGTYPE"):
		return fmt.Errorf("%w: %w", idempotency.ErrCorrupt, err)
	}
	return fmt.Errorf("%w: %w", idempotency.ErrUnavailable, err)
}
