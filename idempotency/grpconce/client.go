package grpconce

import (
	"context"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/oncepay/oncepay/idempotency"
)

// WithKey returns a context whose calls are sent with the key. A client that has to repeat a call
// after a restart makes its own key, and stores it before the first try.
func WithKey(ctx context.Context, key string) context.Context {
	return metadata.AppendToOutgoingContext(ctx, MetadataKey, key)
}

// AddKey is a [grpc.UnaryClientInterceptor] that adds a new key to each call without one. The
// retries of gRPC, which a service config sets, repeat the call with this key: see [Retries].
func AddKey(ctx context.Context, method string, request, reply any, conn *grpc.ClientConn, invoker grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	if md, _ := metadata.FromOutgoingContext(ctx); len(md.Get(MetadataKey)) == 0 {
		ctx = WithKey(ctx, idempotency.NewKey())
	}
	return invoker(ctx, method, request, reply, conn, opts...)
}

// Retries is a service config for [grpc.WithDefaultServiceConfig]: calls to all methods are
// repeated up to four times (gRFC A6), after an answer that a server with this interceptor has not
// kept, and after a connection that broke. Do not use it for methods that keep no keys. Set a
// deadline: a server that is silent is waited for.
const Retries = `{"methodConfig": [{"name": [{}], "retryPolicy": {
	"maxAttempts": 5, "initialBackoff": "0.1s", "maxBackoff": "5s", "backoffMultiplier": 2,
	"retryableStatusCodes": ["UNAVAILABLE", "ABORTED", "RESOURCE_EXHAUSTED", "INTERNAL", "UNKNOWN", "DEADLINE_EXCEEDED"]}}]}`
