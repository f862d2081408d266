package grpconce_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/oncepay/oncepay/idempotency"
	"github.com/oncepay/oncepay/idempotency/grpconce"
)

// TestUnary_FateIsSaidByTheClaimThenTheInterceptorThenTheDefault: of each answer, how a retry ends.
func TestUnary_FateIsSaidByTheClaimThenTheInterceptorThenTheDefault(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		code  codes.Code
		says  idempotency.Fate
		claim func(*idempotency.Claim)
		want  idempotency.Result
	}{
		"the interceptor keeps NotFound":           {code: codes.NotFound, says: idempotency.FateKept, want: idempotency.ResultReplay},
		"the interceptor releases OK":              {code: codes.OK, says: idempotency.FateReleased, want: idempotency.ResultAcquired},
		"nobody knows after Unavailable":           {code: codes.Unavailable, says: idempotency.FateUnknown, want: idempotency.ResultConflict},
		"no interceptor keeps Internal":            {code: codes.Internal, says: idempotency.FateKept, want: idempotency.ResultAcquired},
		"the claim keeps PermissionDenied":         {code: codes.PermissionDenied, claim: (*idempotency.Claim).Keep, want: idempotency.ResultReplay},
		"the claim does not keep DeadlineExceeded": {code: codes.DeadlineExceeded, claim: (*idempotency.Claim).Keep, want: idempotency.ResultAcquired},
		"the claim says that it is unknown":        {code: codes.Internal, claim: (*idempotency.Claim).Unknown, want: idempotency.ResultConflict},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := open(t, idempotency.Policy{})
			s.keys.Fate = func(codes.Code) idempotency.Fate { return tt.says }
			s.service.work = func(ctx context.Context, _ *grpc_testing.SimpleRequest) (*grpc_testing.SimpleResponse, error) {
				if tt.claim != nil {
					tt.claim(idempotency.ClaimFrom(ctx))
				}
				return &grpc_testing.SimpleResponse{}, status.Error(tt.code, "so")
			}
			_, _, first := s.call(as(t, "ada", "key"), request(1))
			require.Equal(t, tt.code, status.Code(first))
			_, _, _ = s.call(as(t, "ada", "key"), request(1))
			require.Equal(t, []idempotency.Result{idempotency.ResultAcquired, tt.want}, s.results())
		})
	}
}

// TestUnary_OfACallWithinAnotherOneHasAClaimOfItsOwnUnderAnotherKey: with the same key, or without
// one, it is a part of the call around it.
func TestUnary_OfACallWithinAnotherOneHasAClaimOfItsOwnUnderAnotherKey(t *testing.T) {
	t.Parallel()
	s := open(t, idempotency.Policy{Required: true})
	var claims []string
	var note grpc.UnaryHandler = func(ctx context.Context, _ any) (any, error) {
		claims = append(claims, idempotency.ClaimFrom(ctx).Key)
		return &grpc_testing.SimpleResponse{}, nil
	}
	s.service.work = func(ctx context.Context, r *grpc_testing.SimpleRequest) (*grpc_testing.SimpleResponse, error) {
		for _, key := range []string{"batch", "", "item-1", "item-1", "item-2"} {
			md := metadata.Pairs("account", "ada")
			if key != "" {
				md.Set(grpconce.MetadataKey, key)
			}
			_, err := s.keys.Unary(metadata.NewIncomingContext(ctx, md), r, &grpc.UnaryServerInfo{FullMethod: "/shop/Item"}, note)
			require.NoError(t, err)
		}
		return &grpc_testing.SimpleResponse{}, nil
	}
	_, _, err := s.call(as(t, "ada", "batch"), request(1))
	require.NoError(t, err)
	require.Equal(t, []string{"batch", "batch", "item-1", "item-2"}, claims)
}

// TestUnary_RepeatsAStatusWhoseMessageIsNotUTF8: a first call and a retry get the same one.
func TestUnary_RepeatsAStatusWhoseMessageIsNotUTF8(t *testing.T) {
	t.Parallel()
	s := open(t, idempotency.Policy{})
	s.service.work = func(context.Context, *grpc_testing.SimpleRequest) (*grpc_testing.SimpleResponse, error) {
		return nil, status.Error(codes.InvalidArgument, "no caf\xe9")
	}
	for range 2 {
		_, _, err := s.call(as(t, "ada", "key"), request(1))
		require.Equal(t, codes.InvalidArgument, status.Code(err))
		require.Equal(t, "no caf\uFFFD", status.Convert(err).Message())
	}
	require.Equal(t, []idempotency.Result{idempotency.ResultAcquired, idempotency.ResultReplay}, s.results())
}
