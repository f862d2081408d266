package grpconce

import (
	"context"
	"log/slog"
	"net/http"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/oncepay/oncepay/idempotency"
)

// Names of the metadata.
const (
	// MetadataKey carries the client's key.
	MetadataKey = "idempotency-key"
	// MetadataReplay is "true" in the header metadata of a replay.
	MetadataReplay = "x-idempotent-replay"
)

// Interceptor makes unary calls idempotent by key. Set its fields before the first call; after that
// it is safe for concurrent use. It must not be copied.
type Interceptor struct {
	// Store keeps the records. It is required.
	Store idempotency.Store
	// Scope returns whose keys these are, usually the account that an interceptor further out has
	// authenticated. A key means nothing outside its scope. A call whose scope is empty is refused
	// with Unauthenticated. It is required.
	Scope func(context.Context) string
	// PolicyFor returns the policy of a method, such as "/shop.v1.Shop/PlaceOrder". A call whose
	// policy is nil passes through. It is required. ExcludedFields are paths of fields, with names
	// as in the .proto file; a list, a map and an Any are no step. Header, Headers, KeyFrom,
	// MaxWait and Fate of a policy have no meaning here: a call is refused with Internal if the
	// policy has one of them.
	PolicyFor func(fullMethod string) *idempotency.Policy
	// Fate, if set, decides what becomes of the key after an answer. [idempotency.FateByDefault]
	// stands for the table of this package.
	Fate func(codes.Code) idempotency.Fate
	// Observe, TraceParent and Log are those of [idempotency.Keys].
	Observe     func(context.Context, idempotency.Check)
	TraceParent func(context.Context) string
	Log         *slog.Logger

	once sync.Once
	keys *idempotency.Keys
}

// Unary is a [grpc.UnaryServerInterceptor].
func (i *Interceptor) Unary(ctx context.Context, request any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
	policy := i.PolicyFor(info.FullMethod)
	if policy == nil {
		return handler(ctx, request)
	}
	key, present, refusal := keyOf(ctx, policy.Required)
	around := idempotency.ClaimFrom(ctx)
	if !present && (refusal == nil || around != nil) {
		return handler(ctx, request)
	}
	scope := i.Scope(ctx)
	if around != nil && around.Scope == scope && around.Key == key { // a part of the call around it
		return handler(ctx, request)
	}
	if refusal != nil {
		i.observeRefused(ctx, scope, key, present)
		return nil, refuse(ctx, refusal)
	}
	message, isProto := request.(proto.Message)
	switch {
	case scope == "":
		return nil, status.Error(codes.Unauthenticated, "The caller of this method must be known.")
	case !isProto:
		return nil, i.unsupported(ctx, info.FullMethod, "a request that is no proto.Message")
	case policy.Header != "" || len(policy.Headers) > 0 || policy.KeyFrom != nil || policy.MaxWait != 0 || policy.Fate != nil:
		return nil, i.unsupported(ctx, info.FullMethod, "a policy with Header, Headers, KeyFrom, MaxWait or Fate")
	}
	content, err := contentOf(info.FullMethod, message, policy.ExcludedFields)
	if err != nil {
		return nil, status.Errorf(codes.InvalidArgument, "The request cannot be compared with others: %v", err)
	}
	keys := i.shared().In(scope)
	keys.Policy = *policy
	return i.do(ctx, keys, key, content, func(ctx context.Context) (any, error) { return handler(ctx, request) })
}

// Stream is a [grpc.StreamServerInterceptor]. It refuses a stream with a key, or without a required
// one, with Unimplemented: the client would take it for safe to retry. Others pass through.
func (i *Interceptor) Stream(srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
	policy := i.PolicyFor(info.FullMethod)
	md, _ := metadata.FromIncomingContext(stream.Context())
	if len(md.Get(MetadataKey)) > 0 || policy != nil && policy.Required {
		return status.Error(codes.Unimplemented, "Idempotency keys are for unary methods. A stream cannot be repeated under a key.")
	}
	return handler(srv, stream)
}

// Wait returns when the steps that outlived their calls have ended, after a few seconds at most.
// Call it after [grpc.Server.GracefulStop], and before closing the store.
func (i *Interceptor) Wait() { i.shared().Wait() }

// shared panics if a required field is missing: such a program is wrong from its first call on.
func (i *Interceptor) shared() *idempotency.Keys {
	i.once.Do(func() {
		if i.Store == nil || i.Scope == nil || i.PolicyFor == nil {
			panic("grpconce: an Interceptor needs Store, Scope and PolicyFor")
		}
		i.keys = &idempotency.Keys{
			Store: i.Store, Detached: true, TraceParent: i.TraceParent, Log: i.Log,
			Observe: func(ctx context.Context, check idempotency.Check) {
				note(ctx, check.Result)
				i.observe(ctx, check)
			},
		}
	})
	return i.keys
}

func (i *Interceptor) observe(ctx context.Context, check idempotency.Check) {
	if i.Observe != nil {
		i.Observe(ctx, check)
	}
}

func (i *Interceptor) observeRefused(ctx context.Context, scope, key string, present bool) {
	result := idempotency.ResultMissing
	if present {
		result = idempotency.ResultMalformed
	}
	i.observe(ctx, idempotency.Check{Scope: scope, Key: key, Result: result})
}

// unsupported refuses what the program has to mend. The client learns nothing of it.
func (i *Interceptor) unsupported(ctx context.Context, method, found string) error {
	log := i.Log
	if log == nil {
		log = slog.Default()
	}
	log.ErrorContext(ctx, "grpconce: the call was refused, because the method has "+found, "method", method)
	return status.Error(codes.Internal, "Idempotency is not set up for this method, so the call was not executed.")
}

// keyOf reads the key, which is written as in the header of an HTTP request.
func keyOf(ctx context.Context, required bool) (key string, present bool, refusal *idempotency.Error) {
	md, _ := metadata.FromIncomingContext(ctx)
	key, present, refusal = idempotency.ParseKey(http.Header{idempotency.HeaderKey: md.Get(MetadataKey)})
	if !present && required {
		refusal = &idempotency.Error{Code: idempotency.CodeKeyMissing, Message: "The metadata " + MetadataKey + " is required."}
	}
	return key, present, refusal
}
