package redisstore

import (
	"context"
	"errors"
	"fmt"

	"github.com/redis/go-redis/v9"

	"github.com/oncepay/oncepay/idempotency"
)

// repeated takes a step, and takes it once more if its reply was lost: each step succeeds when
// the same owner takes it again. It does not repeat a step that the server answered, even with
// an error, nor after the caller gave up.
func repeated(ctx context.Context, step func() error) error {
	err := step()
	if err == nil || isReply(err) || errors.Is(err, redis.ErrPoolTimeout) || ctx.Err() != nil {
		return err
	}
	return step()
}

// isReply reports whether the server answered with this error, which may be redis.Nil. All others
// are network errors.
func isReply(err error) bool {
	var reply redis.Error
	return errors.As(err, &reply)
}

// translate turns Redis's errors into the library's. Every error that is not about the record
// itself means that the server is unavailable: timeouts, OOM, READONLY after a failover,
// LOADING, no permission.
func translate(err error) error {
	switch {
	case errors.Is(err, idempotency.ErrLost), errors.Is(err, idempotency.ErrCorrupt), errors.Is(err, idempotency.ErrUnavailable):
		return err
	case redis.HasErrorPrefix(err, "WRONGTYPE"):
		return fmt.Errorf("%w: %w", idempotency.ErrCorrupt, err)
	}
	return fmt.Errorf("%w: %w", idempotency.ErrUnavailable, err)
}
