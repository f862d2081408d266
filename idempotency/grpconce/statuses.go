package grpconce

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/protoadapt"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/oncepay/oncepay/idempotency"
)

// Domain is that of the ErrorInfo of all refusals. Its reasons are the codes of
// [idempotency.Error] in upper case, such as IDEMPOTENCY_IN_PROGRESS.
const Domain = "github.com/oncepay/oncepay/idempotency"

// noAnswerRetryAfter is as long as the middleware's.
const noAnswerRetryAfter = 2 * time.Second

var codeOf = map[string]codes.Code{
	idempotency.CodeKeyMissing:       codes.InvalidArgument,
	idempotency.CodeKeyMalformed:     codes.InvalidArgument,
	idempotency.CodeKeyTooLong:       codes.InvalidArgument,
	idempotency.CodeInProgress:       codes.Aborted,
	idempotency.CodeKeyReused:        codes.FailedPrecondition, // AlreadyExists would be taken for success
	idempotency.CodeResponseNotKept:  codes.AlreadyExists,
	idempotency.CodeStoreUnavailable: codes.Unavailable,
	idempotency.CodeRequestTimeout:   codes.Unavailable,
}

// fateOf is the one rule: first the claim says it, then the interceptor, then the default.
func (i *Interceptor) fateOf(code codes.Code, claim *idempotency.Claim) idempotency.Fate {
	fate := claim.Fate()
	if fate == idempotency.FateKept && !isKeepable(code) {
		fate = idempotency.FateByDefault
	}
	if fate == idempotency.FateByDefault && i.Fate != nil {
		fate = i.Fate(code)
	}
	switch {
	case fate == idempotency.FateByDefault && isKeepable(code) && !isOfNoHandler(code):
		return idempotency.FateKept
	case fate == idempotency.FateByDefault, fate == idempotency.FateKept && !isKeepable(code):
		return idempotency.FateReleased
	}
	return fate
}

// isKeepable reports whether an answer says what became of the call. The others allow a retry.
func isKeepable(code codes.Code) bool {
	switch code {
	case codes.OK, codes.InvalidArgument, codes.AlreadyExists, codes.FailedPrecondition, codes.OutOfRange:
		return true
	}
	return isOfNoHandler(code)
}

// isOfNoHandler: interceptors give these answers, too, instead of a handler.
func isOfNoHandler(code codes.Code) bool {
	return code == codes.NotFound || code == codes.PermissionDenied || code == codes.Unauthenticated
}

// refuse returns the status for an error of [idempotency.Do].
func refuse(ctx context.Context, err error) error {
	var refusal *idempotency.Error
	switch {
	case errors.As(err, &refusal):
		return withPushback(ctx, statusOf(refusal))
	case ctx.Err() != nil: // nobody waits for it
		return status.FromContextError(ctx.Err()).Err()
	}
	return status.Error(codes.Internal, "The kept answer could not be read.")
}

func statusOf(e *idempotency.Error) error {
	details := []protoadapt.MessageV1{&errdetails.ErrorInfo{Reason: strings.ToUpper(e.Code), Domain: Domain}}
	if e.RetryAfter > 0 {
		details = append(details, &errdetails.RetryInfo{RetryDelay: durationpb.New(e.RetryAfter)})
	}
	s := status.New(codeOf[e.Code], e.Message)
	if full, err := s.WithDetails(details...); err == nil {
		s = full
	}
	return s.Err()
}

// withPushback repeats the RetryInfo of a status in the trailer that gRPC's own retries follow.
func withPushback(ctx context.Context, err error) error {
	for _, detail := range status.Convert(err).Details() {
		if info, ok := detail.(*errdetails.RetryInfo); ok {
			pushback := strconv.FormatInt(info.GetRetryDelay().AsDuration().Milliseconds(), 10)
			_ = grpc.SetTrailer(ctx, metadata.Pairs("grpc-retry-pushback-ms", pushback)) // the client may be gone
		}
	}
	return err
}

// asStatus returns what a handler's error is for the client: as gRPC does, but a handler that has
// given up because its context had ended has no answer.
func asStatus(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	s, ok := status.FromError(err)
	if !ok {
		s = status.FromContextError(err)
	}
	if code := s.Code(); ctx.Err() != nil && (code == codes.Canceled || code == codes.DeadlineExceeded) {
		return statusOf(&idempotency.Error{
			Code: idempotency.CodeRequestTimeout, RetryAfter: noAnswerRetryAfter,
			Message: "The call was not answered in time, and may have been executed. Retry with the same key.",
		})
	}
	if !utf8.ValidString(s.Message()) { // a kept status is a protobuf message, and the retry gets the same
		valid := s.Proto()
		valid.Message = strings.ToValidUTF8(valid.GetMessage(), "\uFFFD")
		s = status.FromProto(valid)
	}
	return s.Err()
}
