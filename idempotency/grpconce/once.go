package grpconce

import (
	"context"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/oncepay/oncepay/idempotency"
)

// do runs the handler under the key, or answers without it.
func (i *Interceptor) do(ctx context.Context, keys *idempotency.Keys, key string, content []byte, handler func(context.Context) (any, error)) (any, error) {
	var response any
	var failure error
	ran := false
	result := new(idempotency.Result)
	ctx = context.WithValue(ctx, resultKey{}, result)
	kept, err := idempotency.Do(ctx, keys, key, content, func(ctx context.Context) (*answer, error) {
		ran = true
		response, failure = handler(ctx)
		failure = asStatus(ctx, failure)
		claim := idempotency.ClaimFrom(ctx)
		switch i.fateOf(status.Code(failure), claim) {
		case idempotency.FateKept:
			return &answer{response: response, failure: failure}, nil
		case idempotency.FateUnknown:
			claim.Unknown()
		default:
			claim.Release()
		}
		return nil, failure
	})
	if *result == idempotency.ResultReplay {
		_ = grpc.SetHeader(ctx, metadata.Pairs(MetadataReplay, "true")) // the client may be gone
	}
	switch {
	case ran:
		return response, withPushback(ctx, failure)
	case err != nil:
		return nil, refuse(ctx, err)
	}
	return kept.response, kept.failure
}

type resultKey struct{}

// note is called by the observer, which alone knows that an authority has replayed.
func note(ctx context.Context, result idempotency.Result) {
	if to, ok := ctx.Value(resultKey{}).(*idempotency.Result); ok {
		*to = result
	}
}
