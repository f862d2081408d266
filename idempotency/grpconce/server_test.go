package grpconce_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/oncepay/oncepay/idempotency"
	"github.com/oncepay/oncepay/idempotency/grpconce"
	"github.com/oncepay/oncepay/idempotency/internal/faulty"
	"github.com/oncepay/oncepay/idempotency/memstore"
)

// onStores runs a test on each store.
func onStores(t *testing.T, test func(t *testing.T, store idempotency.Store)) {
	t.Helper()
	t.Run("memory", func(t *testing.T) { t.Parallel(); test(t, memstore.New()) })
	t.Run("Redis", func(t *testing.T) { t.Parallel(); test(t, startRedis(t)) })
}

func requireStatus(t *testing.T, code codes.Code, reason string, err error) {
	t.Helper()
	require.Equal(t, code, status.Code(err), "%v", err)
	for _, detail := range status.Convert(err).Details() {
		if info, ok := detail.(*errdetails.ErrorInfo); ok {
			require.Equal(t, grpconce.Domain, info.GetDomain())
			require.Equal(t, reason, info.GetReason())
			return
		}
	}
	require.Fail(t, "no ErrorInfo", "%v", err)
}

func retryDelay(err error) time.Duration {
	for _, detail := range status.Convert(err).Details() {
		if info, ok := detail.(*errdetails.RetryInfo); ok {
			return info.GetRetryDelay().AsDuration()
		}
	}
	return 0
}

func TestUnary_ReplaysTheResponse(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, store idempotency.Store) {
		s := openOn(t, store, idempotency.Policy{Required: true})
		first, replay, err := s.call(as(t, "ada", "key"), request(1))
		require.NoError(t, err)
		require.False(t, replay)
		for range 2 {
			again, replay, err := s.call(as(t, "ada", `"key"`), request(1))
			require.NoError(t, err)
			require.True(t, replay)
			require.True(t, proto.Equal(first, again))
		}
		require.Equal(t, 1, s.service.ran())
		require.Equal(t, []idempotency.Result{idempotency.ResultAcquired, idempotency.ResultReplay, idempotency.ResultReplay}, s.results())
	})
}

// TestUnary_ReplaysFieldsItDoesNotKnow: a handler that passes on the answer of a newer service.
func TestUnary_ReplaysFieldsItDoesNotKnow(t *testing.T) {
	t.Parallel()
	s := open(t, idempotency.Policy{})
	s.service.work = func(context.Context, *grpc_testing.SimpleRequest) (*grpc_testing.SimpleResponse, error) {
		response := &grpc_testing.SimpleResponse{}
		response.ProtoReflect().SetUnknown([]byte{0xa0, 0x06, 0x01}) // field 100 is 1
		return response, nil
	}
	for range 2 {
		response, _, err := s.call(as(t, "ada", "key"), request(1))
		require.NoError(t, err)
		require.NotEmpty(t, response.ProtoReflect().GetUnknown())
	}
	require.Equal(t, 1, s.service.ran())
}

func TestUnary_KeepsByTheStatus(t *testing.T) {
	t.Parallel()
	kept := map[codes.Code]bool{
		codes.InvalidArgument: true, codes.AlreadyExists: true, codes.FailedPrecondition: true, codes.OutOfRange: true,
	}
	for code := codes.Canceled; code <= codes.Unauthenticated; code++ {
		t.Run(code.String(), func(t *testing.T) {
			t.Parallel()
			s := open(t, idempotency.Policy{})
			s.service.work = func(context.Context, *grpc_testing.SimpleRequest) (*grpc_testing.SimpleResponse, error) {
				full, err := status.New(code, "sold out").WithDetails(&errdetails.ResourceInfo{ResourceName: "tee"})
				require.NoError(t, err)
				return nil, full.Err()
			}
			_, _, first := s.call(as(t, "ada", "key"), request(1))
			_, replay, again := s.call(as(t, "ada", "key"), request(1))
			require.Equal(t, kept[code], replay)
			require.Equal(t, code, status.Code(first))
			require.True(t, proto.Equal(status.Convert(first).Proto(), status.Convert(again).Proto()), "%v, %v", first, again)
			require.Len(t, status.Convert(again).Details(), 1)
			require.Equal(t, map[bool]int{true: 1, false: 2}[kept[code]], s.service.ran())
		})
	}
}

func TestUnary_TakesAnyErrorAsGRPCDoes(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		err  error
		want codes.Code
		runs int
	}{
		{errBroken, codes.Unknown, 2},
		{context.DeadlineExceeded, codes.DeadlineExceeded, 2}, // of something that the handler asked
		{fmt.Errorf("order 7: %w", status.Error(codes.OutOfRange, "no such order")), codes.OutOfRange, 1},
	} {
		s := open(t, idempotency.Policy{})
		s.service.work = func(context.Context, *grpc_testing.SimpleRequest) (*grpc_testing.SimpleResponse, error) {
			return nil, tt.err
		}
		for range 2 {
			_, _, err := s.call(as(t, "ada", "key"), request(1))
			require.Equal(t, tt.want, status.Code(err))
			require.ErrorContains(t, err, tt.err.Error())
		}
		require.Equal(t, tt.runs, s.service.ran())
	}
}

func TestUnary_RefusesAnotherCall(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, store idempotency.Store) {
		s := openOn(t, store, idempotency.Policy{ExcludedFields: []string{"payload.body"}})
		_, _, err := s.call(as(t, "ada", "key"), request(1))
		require.NoError(t, err)
		same := request(1)
		same.Payload.Body = []byte("sent later")
		_, _, err = s.call(as(t, "ada", "key"), same)
		require.NoError(t, err, "the field is excluded")
		require.Equal(t, "sent later", string(same.GetPayload().GetBody()))
		_, _, err = s.call(as(t, "ada", "key"), request(2))
		requireStatus(t, codes.FailedPrecondition, "IDEMPOTENCY_KEY_REUSED", err)
		_, err = s.CacheableUnaryCall(as(t, "ada", "key"), request(1))
		requireStatus(t, codes.FailedPrecondition, "IDEMPOTENCY_KEY_REUSED", err)
		require.Equal(t, 1, s.service.ran())
	})
}

func TestUnary_SeparatesCallers(t *testing.T) {
	t.Parallel()
	s := open(t, idempotency.Policy{})
	for _, account := range []string{"ada", "bob"} {
		for range 2 {
			_, _, err := s.call(as(t, account, "key"), request(1))
			require.NoError(t, err)
		}
	}
	require.Equal(t, 2, s.service.ran())
	_, _, err := s.call(as(t, "", "key"), request(1))
	require.Equal(t, codes.Unauthenticated, status.Code(err))
	require.Equal(t, 2, s.service.ran())
}

func TestUnary_RefusesWrongKeys(t *testing.T) {
	t.Parallel()
	s := open(t, idempotency.Policy{Required: true})
	for key, reason := range map[string]string{
		"": "IDEMPOTENCY_KEY_MISSING", `""`: "IDEMPOTENCY_KEY_MALFORMED", "a,b": "IDEMPOTENCY_KEY_MALFORMED",
		strings.Repeat("k", 256): "IDEMPOTENCY_KEY_TOO_LONG",
	} {
		_, _, err := s.call(as(t, "ada", key), request(1))
		requireStatus(t, codes.InvalidArgument, reason, err)
	}
	_, _, err := s.call(grpconce.WithKey(as(t, "ada", "key"), "key"), request(1))
	requireStatus(t, codes.InvalidArgument, "IDEMPOTENCY_KEY_MALFORMED", err) // sent twice
	require.Zero(t, s.service.ran())
	require.Empty(t, s.store.Taken())
	require.Len(t, s.results(), 5)
}

func TestUnary_PassesThroughWithoutPolicyOrKey(t *testing.T) {
	t.Parallel()
	s := open(t, idempotency.Policy{})
	_, _, err := s.call(as(t, "ada", ""), request(1))
	require.NoError(t, err)
	s.keys.PolicyFor = func(string) *idempotency.Policy { return nil }
	_, _, err = s.call(as(t, "ada", "key"), request(1))
	require.NoError(t, err)
	require.Empty(t, s.store.Taken())
	require.Equal(t, 2, s.service.ran())
}

func TestUnary_RefusesPoliciesThatItCannotKeep(t *testing.T) {
	t.Parallel()
	for _, policy := range []idempotency.Policy{
		{Header: "X-Key"}, {Headers: []string{"If-Match"}, Required: true}, {MaxWait: time.Second}, {KeyFrom: &idempotency.Content{}},
		{Fate: func(int, http.Header) idempotency.Fate { return idempotency.FateKept }},
	} {
		s := open(t, policy)
		_, _, err := s.call(as(t, "ada", "key"), request(1))
		require.Equal(t, codes.Internal, status.Code(err))
		require.Zero(t, s.service.ran())
	}
}

// TestUnary_HasOneEffectHoweverManyCallAtOnce: some wait for the first, and all get its response.
func TestUnary_HasOneEffectHoweverManyCallAtOnce(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, store idempotency.Store) {
		s := openOn(t, store, idempotency.Policy{Wait: 20 * time.Second})
		begun := make(chan struct{}, 50)
		s.service.work = func(context.Context, *grpc_testing.SimpleRequest) (*grpc_testing.SimpleResponse, error) {
			for range 2 { // two others, at least, have come meanwhile
				<-begun
			}
			return &grpc_testing.SimpleResponse{Username: "once"}, nil
		}
		var calls sync.WaitGroup
		for range 50 {
			calls.Go(func() {
				begun <- struct{}{}
				response, _, err := s.call(as(t, "ada", "key"), request(1))
				if err != nil || response.GetUsername() != "once" {
					t.Errorf("%v, %v", response, err)
				}
			})
		}
		calls.Wait()
		require.Equal(t, 1, s.service.ran())
	})
}

func TestUnary_AnswersWhileAnotherCallIsInProgress(t *testing.T) {
	t.Parallel()
	s := open(t, idempotency.Policy{})
	running, finish := make(chan struct{}), make(chan struct{})
	end := sync.OnceFunc(func() { close(finish) })
	t.Cleanup(end) // a test that fails does not hang
	s.service.work = func(context.Context, *grpc_testing.SimpleRequest) (*grpc_testing.SimpleResponse, error) {
		close(running)
		<-finish
		return &grpc_testing.SimpleResponse{}, nil
	}
	var first sync.WaitGroup
	first.Go(func() { _, _, _ = s.call(as(t, "ada", "key"), request(1)) })
	<-running
	var trailer metadata.MD
	for cents := range int32(2) { // the same request, and another one
		_, err := s.UnaryCall(as(t, "ada", "key"), request(1+cents), grpc.Trailer(&trailer))
		requireStatus(t, codes.Aborted, "IDEMPOTENCY_IN_PROGRESS", err)
		require.Equal(t, time.Second, retryDelay(err))
		require.Equal(t, []string{"1000"}, trailer.Get("grpc-retry-pushback-ms"))
	}
	end()
	first.Wait()
	require.Equal(t, 1, s.service.ran())
}

func TestUnary_GoesOnWithoutItsClient(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, store idempotency.Store) {
		s := openOn(t, store, idempotency.Policy{Wait: 20 * time.Second})
		running, finish := make(chan struct{}), make(chan struct{})
		s.service.work = func(ctx context.Context, _ *grpc_testing.SimpleRequest) (*grpc_testing.SimpleResponse, error) {
			close(running)
			<-finish
			return &grpc_testing.SimpleResponse{Username: "kept"}, ctx.Err()
		}
		ctx, leave := context.WithCancel(as(t, "ada", "key"))
		var first sync.WaitGroup
		first.Go(func() { _, _, _ = s.call(ctx, request(1)) })
		<-running
		leave()
		first.Wait()
		close(finish)
		response, replay, err := s.call(as(t, "ada", "key"), request(1))
		require.NoError(t, err)
		require.True(t, replay)
		require.Equal(t, "kept", response.GetUsername())
		require.Equal(t, 1, s.service.ran())
	})
}

// TestUnary_EndsItsHandler at the deadline, and when the lease is lost. The client may ask again.
func TestUnary_EndsItsHandler(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		policy idempotency.Policy
		fail   func(context.Context, string) error
		cause  error
	}{
		"deadline":   {idempotency.Policy{Deadline: 50 * time.Millisecond}, nil, context.DeadlineExceeded},
		"lost lease": {idempotency.Policy{Lease: 3 * time.Second}, faulty.On(faulty.Extend, idempotency.ErrLost), idempotency.ErrLost},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := open(t, tt.policy)
			s.store.Fail = tt.fail
			cause := make(chan error, 1)
			s.service.work = func(ctx context.Context, _ *grpc_testing.SimpleRequest) (*grpc_testing.SimpleResponse, error) {
				<-ctx.Done()
				cause <- context.Cause(ctx)
				return nil, ctx.Err()
			}
			_, _, err := s.call(as(t, "ada", "key"), request(1))
			requireStatus(t, codes.Unavailable, "REQUEST_TIMEOUT", err)
			require.Equal(t, 2*time.Second, retryDelay(err))
			require.ErrorIs(t, <-cause, tt.cause)
			s.service.work, s.store.Fail = nil, nil
			_, replay, err := s.call(as(t, "ada", "key"), request(1))
			require.NoError(t, err)
			require.False(t, replay)
		})
	}
}

func TestUnary_ReleasesTheKeyOfAHandlerThatPanics(t *testing.T) {
	t.Parallel()
	s := open(t, idempotency.Policy{})
	s.service.work = func(context.Context, *grpc_testing.SimpleRequest) (*grpc_testing.SimpleResponse, error) {
		panic("boom")
	}
	_, _, err := s.call(as(t, "ada", "key"), request(1))
	require.Equal(t, codes.Internal, status.Code(err))
	s.service.work = nil
	_, replay, err := s.call(as(t, "ada", "key"), request(1))
	require.NoError(t, err)
	require.False(t, replay)
	require.Equal(t, []string{"acquire", "release", "acquire", "complete"}, s.store.Taken())
}

func TestUnary_FailsClosedOrOpen(t *testing.T) {
	t.Parallel()
	s := open(t, idempotency.Policy{})
	s.store.Fail = faulty.Always(idempotency.ErrUnavailable)
	_, _, err := s.call(as(t, "ada", "key"), request(1))
	requireStatus(t, codes.Unavailable, "IDEMPOTENCY_STORE_UNAVAILABLE", err)
	require.NotZero(t, retryDelay(err))
	require.Zero(t, s.service.ran())

	s = open(t, idempotency.Policy{FailureMode: idempotency.FailOpen})
	s.store.Fail = faulty.Always(idempotency.ErrUnavailable)
	_, _, err = s.call(as(t, "ada", "key"), request(1))
	require.NoError(t, err)
	require.Equal(t, 1, s.service.ran())
}

func TestUnary_LetsTheAuthorityAnswer(t *testing.T) {
	t.Parallel()
	s := open(t, idempotency.Policy{Authority: true})
	s.service.work = func(ctx context.Context, _ *grpc_testing.SimpleRequest) (*grpc_testing.SimpleResponse, error) {
		claim := idempotency.ClaimFrom(ctx)
		require.Equal(t, "ada/key", claim.Scope+"/"+claim.Key)
		claim.Replayed()
		claim.Release()
		return &grpc_testing.SimpleResponse{Username: "from the table"}, nil
	}
	response, replay, err := s.call(as(t, "ada", "key"), request(1))
	require.NoError(t, err)
	require.True(t, replay)
	require.Equal(t, "from the table", response.GetUsername())
	require.Equal(t, []string{"acquire", "release"}, s.store.Taken())
}

func TestUnary_DoesNotRunAgainForALargeResponse(t *testing.T) {
	t.Parallel()
	s := open(t, idempotency.Policy{})
	s.service.work = func(context.Context, *grpc_testing.SimpleRequest) (*grpc_testing.SimpleResponse, error) {
		return &grpc_testing.SimpleResponse{Payload: &grpc_testing.Payload{Body: make([]byte, 1<<20)}}, nil
	}
	response, _, err := s.call(as(t, "ada", "key"), request(1))
	require.NoError(t, err)
	require.Len(t, response.GetPayload().GetBody(), 1<<20)
	_, _, err = s.call(as(t, "ada", "key"), request(1))
	requireStatus(t, codes.AlreadyExists, "IDEMPOTENCY_RESPONSE_NOT_KEPT", err)
	require.Equal(t, 1, s.service.ran())
}

func TestUnary_RefusesAKeptAnswerThatItCannotRead(t *testing.T) {
	t.Parallel()
	s := open(t, idempotency.Policy{})
	_, _, err := s.call(as(t, "ada", "key"), request(1))
	require.NoError(t, err)
	lookup := func(ctx context.Context, step string) error {
		if step == faulty.Acquire {
			return fmt.Errorf("%w: damaged", idempotency.ErrCorrupt)
		}
		return nil
	}
	s.store.Fail = lookup
	_, _, err = s.call(as(t, "ada", "key"), request(1))
	requireStatus(t, codes.Unavailable, "IDEMPOTENCY_STORE_UNAVAILABLE", err)
	require.NotContains(t, err.Error(), "damaged")
	require.Equal(t, 1, s.service.ran())
}

func TestStream_PassesOnlyWithoutAKey(t *testing.T) {
	t.Parallel()
	send := func(s *shop, key string) error {
		stream, err := s.StreamingInputCall(as(t, "ada", key))
		require.NoError(t, err)
		_, err = stream.CloseAndRecv()
		return err
	}
	s := open(t, idempotency.Policy{})
	require.NoError(t, send(s, ""))
	require.Equal(t, codes.Unimplemented, status.Code(send(s, "key")))
	s = open(t, idempotency.Policy{Required: true})
	require.Equal(t, codes.Unimplemented, status.Code(send(s, "")))
}

func TestInterceptor_NeedsItsFields(t *testing.T) {
	t.Parallel()
	require.Panics(t, func() { (&grpconce.Interceptor{}).Wait() })
}
