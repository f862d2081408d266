package stack

import (
	"context"
	"fmt"
	"io"
	"net"

	toxiproxy "github.com/Shopify/toxiproxy/v2"
	"github.com/rs/zerolog"
)

// Every connection between our own services goes through a Toxiproxy, so that each one can be cut by itself, in the same
// way on both drivers. A cut swallows what either side sends, on new connections too: nobody gets a refusal, as with a
// switch that has failed. One thing differs from a real one: when a side gives up and closes, the other side is told.
//
// The hop costs some 15 µs per round trip on loopback (BenchmarkProxyHop: 31 µs instead of 17): 0.03 ms of a replay, 0.1 ms of
// a card payment.

// ServeProxy runs the proxies of all edges until ctx ends, and Toxiproxy's HTTP API at control (host:port): tools such as
// toxiproxy-cli can add latency and the like there. If that port is taken it ends the whole process, as the library does.
func ServeProxy(ctx context.Context, control string, offset int, log io.Writer) error {
	server := toxiproxy.NewServer(toxiproxy.NewMetricsContainer(nil), zerolog.New(log).Level(zerolog.WarnLevel).With().Timestamp().Logger())
	defer func() { _ = server.Collection.Clear() }()
	p := ports{offset}
	for _, e := range edges {
		proxy := toxiproxy.NewProxy(server, e.name(), p.via(e.from, e.to), p.addr(e.to))
		if err := server.Collection.Add(proxy, true); err != nil {
			return fmt.Errorf("listen for %s: %w", e, err)
		}
	}
	go serveControl(server, control)
	<-ctx.Done()
	return nil
}

// serveControl never returns: the library offers no end.
func serveControl(server *toxiproxy.ApiServer, address string) {
	host, port, _ := net.SplitHostPort(address) // what is wrong with it, Listen will say
	server.Listen(host, port)
}
