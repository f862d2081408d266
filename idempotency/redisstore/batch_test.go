package redisstore

import (
	"context"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
)

// offline answers all commands by itself. The tests on real servers are in tests/redisstore.
type offline struct{}

func (offline) DialHook(next redis.DialHook) redis.DialHook { return next }

func (offline) ProcessHook(redis.ProcessHook) redis.ProcessHook {
	return func(context.Context, redis.Cmder) error { return nil }
}

func (offline) ProcessPipelineHook(redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(context.Context, []redis.Cmder) error { return nil }
}

// TestBatcher_SendsTheBatchOfACallerThatLeft: the first that waits is chosen to send the batch
// and gives up at the same moment.
func TestBatcher_SendsTheBatchOfACallerThatLeft(t *testing.T) {
	t.Parallel()
	client := redis.NewClient(&redis.Options{})
	client.AddHook(offline{})
	t.Cleanup(func() { require.NoError(t, client.Close()) })
	b := &batcher{client: client}
	command := func() redis.Cmder { return redis.NewStringCmd(t.Context(), "get", "key") }
	for range maxRoundTrips {
		require.Nil(t, b.start(command()))
	}
	first, second := b.start(command()), b.start(command())
	b.finish()
	b.abandon(first)
	select {
	case sends := <-second.turn:
		require.False(t, sends, "it was sent")
	case <-time.After(10 * time.Second):
		require.Fail(t, "the batch was not sent")
	}
}
