package redisstore

import (
	"context"

	"github.com/redis/go-redis/v9"
)

// newClusterClient returns a client that follows redirections and otherwise sends each command
// once. go-redis uses MaxRedirects for both, and would send a command whose reply was lost
// three more times.
func newClusterClient(o *redis.ClusterOptions) redis.UniversalClient {
	// The policies are for commands to several nodes; we have none. To know them the client
	// would ask the servers, with a timeout of its own.
	o.DisableRoutingPolicies = true
	client := redis.NewClusterClient(o)
	client.AddHook(sendOnce{client})
	return client
}

// sendOnce marks all commands as not to be repeated. A redirection is no repetition: the node
// that answers with it has executed nothing.
type sendOnce struct{ cluster *redis.ClusterClient }

var _ redis.Hook = sendOnce{}

// unrepeatable is a command that go-redis does not send again after a failure.
type unrepeatable struct{ redis.Cmder }

func (unrepeatable) NoRetry() bool { return true }

// DialHook implements [redis.Hook]. A cluster client does not call it.
func (sendOnce) DialHook(next redis.DialHook) redis.DialHook { return next }

// ProcessHook implements [redis.Hook].
func (s sendOnce) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		return s.reloadAfter(ctx, next(ctx, unrepeatable{cmd}))
	}
}

// ProcessPipelineHook implements [redis.Hook].
func (s sendOnce) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		marked := make([]redis.Cmder, len(cmds))
		for i, cmd := range cmds {
			marked[i] = unrepeatable{cmd}
		}
		return s.reloadAfter(ctx, next(ctx, marked))
	}
}

// reloadAfter makes the client look for a new master after a network error: a dead node cannot
// redirect, and the client by itself looks only once a minute. It does so in the background, a
// few times a second at most.
func (s sendOnce) reloadAfter(ctx context.Context, err error) error {
	if err != nil && !isReply(err) {
		s.cluster.ReloadState(ctx)
	}
	return err
}
