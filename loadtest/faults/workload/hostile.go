package workload

import (
	"context"
	"io"
	"net"
	"net/http"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/oncepay/oncepay/internal/wait"
	"github.com/oncepay/oncepay/loadtest/faults/journal"
)

// knocks is the pause of a stranger after an answer. Without one the strangers' own work would take
// the processors that the replicas need on the same machine.
const knocks = 20 * time.Millisecond

// Flood has size more clients of one account order past nginx without a pause until ctx ends, and
// returns how many orders they sent. They leave at once.
func (c *Clients) Flood(ctx context.Context, name string, size int) (sent int) {
	return c.gather(ctx, name, size, journal.Greedy, func(ctx context.Context, a *action, r Request) int {
		r.Via = []string{api1, api2}[a.n%2]
		if c.abandon(ctx, r) == journal.Unknown {
			_ = wait.Pause(ctx, crowdPause)
		}
		return 1
	})
}

// Knock has size strangers send requests with unknown API keys to nginx and past it, a new key each
// time, until ctx ends. It returns how many were refused. What they send is not in the journal.
func (c *Clients) Knock(ctx context.Context, size int) (refused int) {
	pool := &http.Transport{DialContext: elsewhere().DialContext, MaxIdleConnsPerHost: size}
	defer pool.CloseIdleConnections()
	client := &http.Client{Transport: pool, Timeout: answerTimeout}
	doors := []string{nginx, api1, api2}
	var count atomic.Int64
	var group sync.WaitGroup
	for n := range size {
		group.Go(func() {
			for ctx.Err() == nil {
				if c.knock(ctx, client, c.wire.Endpoints[doors[n%len(doors)]]) {
					count.Add(1)
				}
				_ = wait.Pause(ctx, knocks)
			}
		})
	}
	group.Wait()
	return int(count.Load())
}

// knock sends one request of a stranger, and reports whether it was refused.
func (c *Clients) knock(ctx context.Context, client *http.Client, endpoint string) (refused bool) {
	q, err := http.NewRequestWithContext(ctx, http.MethodGet, endpoint+"/v1/orders", nil)
	if err != nil {
		panic(err) // our own endpoints
	}
	q.Header.Set("Authorization", "Bearer sk_live_"+uuid.NewString())
	answer, err := client.Do(q)
	if err != nil {
		return false
	}
	_, _ = io.Copy(io.Discard, answer.Body)
	_ = answer.Body.Close()
	return answer.StatusCode == http.StatusUnauthorized || answer.StatusCode == http.StatusTooManyRequests
}

// elsewhere dials from another address of this machine, if it has one without being asked: bounds
// for each address are then those of the strangers alone.
func elsewhere() *net.Dialer {
	if runtime.GOOS != "linux" {
		return &net.Dialer{}
	}
	return &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}}
}
