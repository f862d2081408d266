package redisstore

import (
	"context"

	"github.com/redis/go-redis/v9"
)

// newClusterClient makes a client that follows a cluster's redirections and
// otherwise sends each command once. go-redis means MaxRedirects for both, and
// would send a command whose reply was lost three more times.
func newClusterClient(o *redis.ClusterOptions) redis.UniversalClient {
	// The policies are for commands to several nodes, of which we have none. To
	// know them the client would ask the servers, under a timeout of its own.
	o.DisableRoutingPolicies = true
	client := redis.NewClusterClient(o)
	client.AddHook(sendOnce{client})
	return client
}

// sendOnce marks all commands as not to be repeated. A redirection is no
// repetition: the node that answers with it has done nothing.
type sendOnce struct{ cluster *redis.ClusterClient }

var _ redis.Hook = sendOnce{}

// unrepeatable is a command that go-redis doesn't send again after a failure.
type unrepeatable struct{ redis.Cmder }

func (unrepeatable) NoRetry() bool { return true }

// DialHook implements [redis.Hook]. A cluster's client doesn't call it.
func (sendOnce) DialHook(next redis.DialHook) redis.DialHook { return next }

// ProcessHook implements [redis.Hook].
func (s sendOnce) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		return s.noted(ctx, next(ctx, unrepeatable{cmd}))
	}
}

// ProcessPipelineHook implements [redis.Hook].
func (s sendOnce) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		marked := make([]redis.Cmder, len(cmds))
		for i, cmd := range cmds {
			marked[i] = unrepeatable{cmd}
		}
		return s.noted(ctx, next(ctx, marked))
	}
}

// noted looks, after trouble on the way to a node, whether another has taken its
// place: a node that is dead can't redirect, and the client would only look
// within a minute. It does so in the background, a few times a second at most.
func (s sendOnce) noted(ctx context.Context, err error) error {
	if err != nil && !isReply(err) {
		s.cluster.ReloadState(ctx)
	}
	return err
}
