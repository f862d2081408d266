package grpconce_test

import (
	"context"
	"fmt"
	"net"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/oncepay/oncepay/idempotency"
	"github.com/oncepay/oncepay/idempotency/grpconce"
	"github.com/oncepay/oncepay/idempotency/memstore"
)

// shopService stands for what protoc makes of a .proto file.
var shopService = grpc.ServiceDesc{
	ServiceName: "shop.v1.Shop", HandlerType: (*any)(nil),
	Methods: []grpc.MethodDesc{{MethodName: "PlaceOrder", Handler: func(srv any, ctx context.Context, decode func(any) error, intercept grpc.UnaryServerInterceptor) (any, error) {
		var item wrapperspb.StringValue
		if err := decode(&item); err != nil {
			return nil, err
		}
		return intercept(ctx, &item, &grpc.UnaryServerInfo{Server: srv, FullMethod: placeOrder}, func(context.Context, any) (any, error) {
			orders++
			return wrapperspb.String(fmt.Sprintf("order %d: %s", orders, item.GetValue())), nil
		})
	}}},
}

const placeOrder = "/shop.v1.Shop/PlaceOrder"

var orders = 0

// A server whose PlaceOrder can be retried, and a client that retries.
func Example() {
	keys := &grpconce.Interceptor{
		Store: memstore.New(), // several processes need redisstore or pgstore
		Scope: func(ctx context.Context) string {
			md, _ := metadata.FromIncomingContext(ctx)
			return fmt.Sprint(md.Get("account")) // stands for the account that you have authenticated
		},
		PolicyFor: func(method string) *idempotency.Policy {
			if method == placeOrder {
				return &idempotency.Policy{Required: true, TTL: 48 * time.Hour}
			}
			return nil // passes through
		},
	}
	server := grpc.NewServer(grpc.ChainUnaryInterceptor(keys.Unary), grpc.StreamInterceptor(keys.Stream))
	server.RegisterService(&shopService, nil)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Println(err)
		return
	}
	go func() { _ = server.Serve(listener) }()
	defer keys.Wait()
	defer server.GracefulStop()

	client, err := grpc.NewClient(listener.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithUnaryInterceptor(grpconce.AddKey), grpc.WithDefaultServiceConfig(grpconce.Retries))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = client.Close() }()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	ctx = grpconce.WithKey(metadata.AppendToOutgoingContext(ctx, "account", "ada"), "order-17")
	for _, item := range []string{"tee", "tee", "mug"} {
		var order wrapperspb.StringValue
		err := client.Invoke(ctx, placeOrder, wrapperspb.String(item), &order)
		fmt.Printf("%q %v\n", order.GetValue(), status.Code(err))
	}

	// Output:
	// "order 1: tee" OK
	// "order 1: tee" OK
	// "" FailedPrecondition
}
