// Package grpconce makes unary gRPC calls safe to retry: one key has one effect and one answer. A
// server takes it as an interceptor:
//
//	keys := &grpconce.Interceptor{
//		Store: store,
//		Scope: accountOf, // whose keys these are
//		PolicyFor: func(method string) *idempotency.Policy {
//			if method == shop.Shop_PlaceOrder_FullMethodName {
//				return &idempotency.Policy{Required: true, TTL: 48 * time.Hour}
//			}
//			return nil // passes through
//		},
//	}
//	server := grpc.NewServer(
//		grpc.ChainUnaryInterceptor(authenticate, keys.Unary),
//		grpc.StreamInterceptor(keys.Stream))
//	…
//	server.GracefulStop()
//	keys.Wait()
//
// The key is in the metadata [MetadataKey], and is written as in the header Idempotency-Key, see
// [idempotency.ParseKey]. The work is that of [idempotency.Do]: the same leases, heartbeat, waiting
// and [idempotency.Claim]. As with the middleware, the handler's context does not end when the
// client leaves, or its deadline is over, but at the policy's Deadline: the answer is kept for the
// client that comes back. Put the interceptor inside of authentication and rate limits, and inside
// of what makes errors of panics. Validate inside of it, with [idempotency.Claim.Release] before
// the error: a release with stricter rules then still answers the retry of what the release before
// has done.
//
// # Answers
//
// These are kept, and a retry gets them again, with the metadata [MetadataReplay]:
//
//	OK
//	InvalidArgument, AlreadyExists, FailedPrecondition, OutOfRange: with their message and details
//
// All others allow a retry, which runs the handler again. NotFound, PermissionDenied and
// Unauthenticated may come from an interceptor; [Interceptor].Fate or [idempotency.Claim.Keep]
// keeps them. Canceled, Unknown, DeadlineExceeded, ResourceExhausted, Aborted, Unimplemented,
// Internal, Unavailable and DataLoss do not say whether the handler had an effect. Fate may return
// [idempotency.FateUnknown] for them: retries get Aborted for the policy's UnknownFor. Only an
// authority, in which the handler writes the key with the effect, rules out a second one. If the
// handler's context has ended and it returns Canceled or DeadlineExceeded, the client gets
// Unavailable and may ask again.
//
// The interceptor itself answers with these codes. All but Unauthenticated have an ErrorInfo, whose
// domain is [Domain] and whose reason is the code of [idempotency.Error] in upper case:
//
//	InvalidArgument     the key is missing, malformed or too long
//	Unauthenticated     the caller has no scope
//	Aborted             another call with the key is in progress; RetryInfo
//	FailedPrecondition  the key was used for another call: another method or request
//	AlreadyExists       the call was done, but its answer was not kept, as it was too large
//	Unavailable         the store cannot be reached; RetryInfo
//
// With RetryInfo they also have the trailer grpc-retry-pushback-ms, which gRPC's own retries
// follow (gRFC A6).
//
// The response is kept as its bytes and the name of its type, a status as google.rpc.Status. What a
// handler sets in header or trailer metadata is not kept. In a status message, U+FFFD replaces
// bytes that are not UTF-8. A record holds 1 MiB, which are responses
// of up to about 768 KiB.
//
// # Comparing requests
//
// Two calls with one key are the same if the method and the bytes of the request are. The server
// marshals what it has decoded, so it does not matter which client wrote the fields in which
// order. Deterministic marshalling returns the same bytes for equal messages within one build of a
// program, also of what an Any holds, if the server knows its type. It promises nothing across
// builds. Should the bytes change with a release of protobuf, a server with the new release
// refuses the retry of a call that one with the old release answered, with FailedPrecondition: the
// call is not executed twice, and gets nobody else's answer. A test of this package compares bytes
// that were written down, and fails before such a release is taken.
//
// Nor are the bytes the same across versions of a .proto file: a server writes the fields that it
// does not know after all others. During a rolling update a retry with a new field may meet a
// server of the other version, which refuses it in the same way. So let clients set a new field
// once all servers know it.
//
// # Streams
//
// A stream is no request that could be compared, and has no answer that could be kept.
// [Interceptor.Stream] passes streams without a key through, and refuses those with one, or whose
// policy requires one.
package grpconce
