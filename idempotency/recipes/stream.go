package recipes

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/oncepay/oncepay/idempotency"
)

// Consumer does the work of each event of a Redis stream, and not again when the event is added or
// delivered once more. Several consumers of a group may run at once, each with a name of its own.
//
// A process that dies within Work, after its effect, has it run again: as with every
// [idempotency.Do], only an authority in Work rules out a second effect (package authority,
// ExampleKeys_Once).
type Consumer struct {
	Client              *redis.Client
	Stream, Group, Name string
	Keys                *idempotency.Keys // on a store that all consumers share
	Work                func(context.Context, redis.XMessage) error
	// Idle is the time after which a message that was not acknowledged is delivered again. It
	// should be longer than the lease of Keys (15 s by default): until then the work counts as in
	// progress.
	Idle time.Duration
}

// RunOnce takes up to ten messages, first those that another delivery left behind, and returns of
// how many the work is done. It waits up to a second for one. A message whose work failed is
// delivered again after Idle.
func (c *Consumer) RunOnce(ctx context.Context) (done int, err error) {
	messages, err := c.take(ctx)
	for _, m := range messages {
		if workErr := c.handle(ctx, m); workErr != nil {
			err = errors.Join(err, fmt.Errorf("message %s: %w", m.ID, workErr))
			continue
		}
		done++
	}
	return done, err
}

func (c *Consumer) take(ctx context.Context) ([]redis.XMessage, error) {
	left, _, err := c.Client.XAutoClaim(ctx, &redis.XAutoClaimArgs{
		Stream: c.Stream, Group: c.Group, Consumer: c.Name, MinIdle: c.Idle, Start: "0", Count: 10,
	}).Result()
	if err != nil || len(left) > 0 {
		return left, err
	}
	streams, err := c.Client.XReadGroup(ctx, &redis.XReadGroupArgs{
		Streams: []string{c.Stream, ">"}, Group: c.Group, Consumer: c.Name, Count: 10, Block: time.Second,
	}).Result()
	switch {
	case errors.Is(err, redis.Nil): // none came
		return nil, nil
	case err != nil:
		return nil, err
	}
	return streams[0].Messages, nil
}

// handle acknowledges a message whose work is done, now or by an earlier delivery, or refused for
// good. The key is the name that the producer gave the event: a producer that repeats XADD makes
// a second message with another ID. A message with the name of another event is acknowledged, too,
// and its error returned: it would be refused for ever.
func (c *Consumer) handle(ctx context.Context, m redis.XMessage) error {
	event, _ := m.Values["event"].(string)
	_, err := idempotency.Do(ctx, c.Keys, event, m.Values, func(ctx context.Context) (struct{}, error) {
		return struct{}{}, c.Work(ctx, m)
	})
	var final *idempotency.FinalError
	var refusal *idempotency.Error
	switch {
	case errors.As(err, &final):
		err = nil
	case errors.As(err, &refusal) && refusal.Code == idempotency.CodeKeyReused:
	case err != nil:
		return err
	}
	return errors.Join(err, c.Client.XAck(ctx, c.Stream, c.Group, m.ID).Err())
}
