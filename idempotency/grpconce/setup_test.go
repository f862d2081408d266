package grpconce_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/oncepay/oncepay/idempotency"
	"github.com/oncepay/oncepay/idempotency/grpconce"
	"github.com/oncepay/oncepay/idempotency/internal/faulty"
	"github.com/oncepay/oncepay/idempotency/memstore"
	"github.com/oncepay/oncepay/idempotency/redisstore"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var errBroken = errors.New("broken")

// service is gRPC's own test service, with one method that has an effect.
type service struct {
	grpc_testing.UnimplementedTestServiceServer
	work func(context.Context, *grpc_testing.SimpleRequest) (*grpc_testing.SimpleResponse, error)

	mu   sync.Mutex
	runs int
}

func (s *service) UnaryCall(ctx context.Context, r *grpc_testing.SimpleRequest) (*grpc_testing.SimpleResponse, error) {
	s.mu.Lock()
	s.runs++
	run := s.runs
	s.mu.Unlock()
	if s.work != nil {
		return s.work(ctx, r)
	}
	return &grpc_testing.SimpleResponse{Username: fmt.Sprint("run ", run)}, nil
}

func (s *service) CacheableUnaryCall(ctx context.Context, r *grpc_testing.SimpleRequest) (*grpc_testing.SimpleResponse, error) {
	return s.UnaryCall(ctx, r)
}

func (s *service) StreamingInputCall(stream grpc.ClientStreamingServer[grpc_testing.StreamingInputCallRequest, grpc_testing.StreamingInputCallResponse]) error {
	return stream.SendAndClose(&grpc_testing.StreamingInputCallResponse{})
}

func (s *service) ran() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.runs
}

// shop is a server on loopback and a client of it.
type shop struct {
	grpc_testing.TestServiceClient
	service service
	keys    *grpconce.Interceptor
	store   *faulty.Store
	conns   connections

	mu     sync.Mutex
	checks []idempotency.Check
}

// open starts a server whose methods have the policy. The caller's account is in its metadata.
func open(t *testing.T, policy idempotency.Policy, opts ...grpc.DialOption) *shop {
	t.Helper()
	return openOn(t, memstore.New(), policy, opts...)
}

func openOn(t *testing.T, store idempotency.Store, policy idempotency.Policy, opts ...grpc.DialOption) *shop {
	t.Helper()
	s := &shop{store: &faulty.Store{Store: store}}
	s.keys = &grpconce.Interceptor{
		Store: s.store, Scope: accountOf, Log: slog.New(slog.DiscardHandler),
		PolicyFor: func(string) *idempotency.Policy { return &policy },
		Observe: func(_ context.Context, c idempotency.Check) {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.checks = append(s.checks, c)
		},
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	s.conns.Listener = listener
	server := grpc.NewServer(grpc.ChainUnaryInterceptor(recovered, s.keys.Unary), grpc.StreamInterceptor(s.keys.Stream), grpc.WaitForHandlers(true))
	grpc_testing.RegisterTestServiceServer(server, &s.service)
	var serving sync.WaitGroup
	serving.Go(func() { _ = server.Serve(&s.conns) })
	opts = append([]grpc.DialOption{grpc.WithTransportCredentials(insecure.NewCredentials())}, opts...)
	client, err := grpc.NewClient(listener.Addr().String(), opts...)
	require.NoError(t, err)
	s.TestServiceClient = grpc_testing.NewTestServiceClient(client)
	t.Cleanup(func() {
		_ = client.Close()
		server.Stop()
		serving.Wait()
		s.keys.Wait()
	})
	return s
}

// connections is a listener whose connections can be broken.
type connections struct {
	net.Listener
	mu   sync.Mutex
	open []net.Conn
}

func (c *connections) Accept() (net.Conn, error) {
	conn, err := c.Listener.Accept()
	if err == nil {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.open = append(c.open, conn)
	}
	return conn, err
}

func (c *connections) breakAll() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, conn := range c.open {
		_ = conn.Close()
	}
	c.open = nil
}

func accountOf(ctx context.Context) string {
	md, _ := metadata.FromIncomingContext(ctx)
	if account := md.Get("account"); len(account) == 1 {
		return account[0]
	}
	return ""
}

// recovered stands for an interceptor that makes answers of panics.
func recovered(ctx context.Context, r any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (_ any, err error) {
	defer func() {
		if recover() != nil {
			err = status.Error(codes.Internal, "sorry")
		}
	}()
	return handler(ctx, r)
}

// as returns a context with an account, and the key if there is one. It ends before the test hangs.
func as(t *testing.T, account, key string) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	t.Cleanup(cancel)
	ctx = metadata.AppendToOutgoingContext(ctx, "account", account)
	if key != "" {
		ctx = grpconce.WithKey(ctx, key)
	}
	return ctx
}

func request(cents int32) *grpc_testing.SimpleRequest {
	return &grpc_testing.SimpleRequest{ResponseSize: cents, Payload: &grpc_testing.Payload{Body: []byte("tee")}}
}

// call reports whether the answer was marked as a replay.
func (s *shop) call(ctx context.Context, r *grpc_testing.SimpleRequest) (response *grpc_testing.SimpleResponse, replay bool, err error) {
	var header metadata.MD
	response, err = s.UnaryCall(ctx, r, grpc.Header(&header))
	return response, len(header.Get(grpconce.MetadataReplay)) == 1, err
}

func (s *shop) results() []idempotency.Result {
	s.mu.Lock()
	defer s.mu.Unlock()
	results := make([]idempotency.Result, 0, len(s.checks))
	for _, check := range s.checks {
		results = append(results, check.Result)
	}
	return results
}

// startRedis needs the program redis-server.
func startRedis(t *testing.T) idempotency.Store {
	t.Helper()
	socket := filepath.Join(t.TempDir(), "redis.sock")
	server := exec.Command("redis-server", "--port", "0", "--unixsocket", socket, "--save", "", "--dir", t.TempDir())
	require.NoError(t, server.Start())
	client := redis.NewClient(&redis.Options{Network: "unix", Addr: socket, MaxRetries: -1})
	t.Cleanup(func() {
		_ = client.Close()
		_ = server.Process.Kill()
		_ = server.Wait()
	})
	require.Eventually(t, func() bool { return client.Ping(t.Context()).Err() == nil }, 20*time.Second, 10*time.Millisecond)
	return redisstore.New(client)
}
