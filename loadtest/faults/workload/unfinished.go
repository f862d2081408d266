package workload

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/url"
	"sync"
	"sync/atomic"
)

// halves are what unfinished requests ask for: both of the bounds that nginx has.
var halves = []string{"/v1/orders", "/v1/orders/00000000-0000-0000-0000-000000000000/payments"}

// LeaveUnfinished sends size requests to nginx without an API key and without the end of their
// bodies, keeps their connections open until ctx ends, and returns how many it sent.
func (c *Clients) LeaveUnfinished(ctx context.Context, size int) (sent int) {
	at, err := url.Parse(c.wire.Endpoints[nginx])
	if err != nil {
		panic(err) // our own endpoint
	}
	var requests atomic.Int64
	var group sync.WaitGroup
	for n := range size {
		group.Go(func() {
			conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", at.Host)
			if err != nil {
				return // not counted
			}
			defer func() { _ = conn.Close() }()
			half := "POST " + halves[n%len(halves)] + " HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 200\r\n\r\n{"
			if _, err := fmt.Fprint(conn, half); err == nil {
				requests.Add(1)
				stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
				_, _ = io.Copy(io.Discard, conn) // until nginx or ctx ends it
				stop()
			}
		})
	}
	group.Wait()
	return int(requests.Load())
}
