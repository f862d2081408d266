package grpconce_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/oncepay/oncepay/idempotency"
	"github.com/oncepay/oncepay/idempotency/grpconce"
)

// retrying is what a client needs.
func retrying() []grpc.DialOption {
	return []grpc.DialOption{grpc.WithUnaryInterceptor(grpconce.AddKey), grpc.WithDefaultServiceConfig(grpconce.Retries)}
}

// TestClient_SurvivesALostAnswer: the connection breaks after the effect, and before the answer.
func TestClient_SurvivesALostAnswer(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, store idempotency.Store) {
		s := openOn(t, store, idempotency.Policy{Required: true, Wait: 20 * time.Second}, retrying()...)
		s.service.work = func(context.Context, *grpc_testing.SimpleRequest) (*grpc_testing.SimpleResponse, error) {
			s.conns.breakAll()
			return &grpc_testing.SimpleResponse{Username: "once"}, nil
		}
		response, replay, err := s.call(as(t, "ada", ""), request(1))
		require.NoError(t, err)
		require.True(t, replay)
		require.Equal(t, "once", response.GetUsername())
		require.Equal(t, 1, s.service.ran())
	})
}

// TestClient_RepeatsUnderItsKey repeats what was not kept, and nothing else. Each call has a key of
// its own.
func TestClient_RepeatsUnderItsKey(t *testing.T) {
	t.Parallel()
	s := open(t, idempotency.Policy{Required: true}, retrying()...)
	var keys []string
	s.service.work = func(ctx context.Context, _ *grpc_testing.SimpleRequest) (*grpc_testing.SimpleResponse, error) {
		keys = append(keys, idempotency.ClaimFrom(ctx).Key)
		if len(keys) == 1 {
			return nil, status.Error(codes.Internal, "the ledger is away")
		}
		return nil, status.Error(codes.FailedPrecondition, "sold out")
	}
	for range 2 {
		_, _, err := s.call(as(t, "ada", ""), request(1))
		require.Equal(t, codes.FailedPrecondition, status.Code(err))
	}
	require.Len(t, keys, 3)
	require.Equal(t, keys[0], keys[1])
	require.NotEqual(t, keys[1], keys[2])
}

// TestClient_WaitsAsLongAsTheServerAsks for a call in progress.
func TestClient_WaitsAsLongAsTheServerAsks(t *testing.T) {
	t.Parallel()
	s := open(t, idempotency.Policy{Required: true}, retrying()...)
	running, finish := make(chan struct{}), make(chan struct{})
	end := sync.OnceFunc(func() { close(finish) })
	t.Cleanup(end) // a test that fails does not hang
	s.service.work = func(context.Context, *grpc_testing.SimpleRequest) (*grpc_testing.SimpleResponse, error) {
		close(running)
		<-finish
		return &grpc_testing.SimpleResponse{}, nil
	}
	first := make(chan error, 1)
	go func() { _, _, err := s.call(as(t, "ada", "key"), request(1)); first <- err }()
	<-running
	var refused atomic.Bool
	s.keys.Observe = func(_ context.Context, c idempotency.Check) {
		if c.Result == idempotency.ResultConflict && refused.CompareAndSwap(false, true) {
			end()
		}
	}
	began := time.Now()
	_, replay, err := s.call(as(t, "ada", "key"), request(1))
	require.NoError(t, err)
	require.True(t, replay)
	require.GreaterOrEqual(t, time.Since(began), 900*time.Millisecond, "RetryInfo asks for a second; gRPC varies its own pauses of 0.1 s")
	require.NoError(t, <-first)
}

func TestAddKey_KeepsTheCallersKey(t *testing.T) {
	t.Parallel()
	s := open(t, idempotency.Policy{Required: true}, retrying()...)
	s.service.work = func(ctx context.Context, _ *grpc_testing.SimpleRequest) (*grpc_testing.SimpleResponse, error) {
		md, _ := metadata.FromIncomingContext(ctx)
		require.Equal(t, []string{"mine"}, md.Get(grpconce.MetadataKey))
		return &grpc_testing.SimpleResponse{}, nil
	}
	_, _, err := s.call(as(t, "ada", "mine"), request(1))
	require.NoError(t, err)
}
