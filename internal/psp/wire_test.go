package psp

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/internal/checkout"
)

const approvedReply = `{"id":"ch_1","idempotency_key":"key-1","amount":4200,"currency":"USD","reference":"order-1","status":"succeeded"}`

// keepAliveThenDrop answers the first request of each connection, keeps it alive, reads the second
// one and then ends the connection without a word. That is the case in which http.Transport likes
// to send a request again.
func keepAliveThenDrop(t *testing.T, arrived *atomic.Int64, end func(net.Conn)) (url string) {
	return rawServer(t, func(conn net.Conn) {
		reader := bufio.NewReader(conn)
		for n := range 2 {
			request, err := http.ReadRequest(reader)
			if err != nil {
				return
			}
			if _, err := io.Copy(io.Discard, request.Body); err != nil {
				return
			}
			arrived.Add(1)
			if n == 0 {
				_, _ = fmt.Fprintf(conn, "HTTP/1.1 201 Created\r\nContent-Length: %d\r\n\r\n%s", len(approvedReply), approvedReply)
			}
		}
		end(conn)
	})
}

func TestClient_NeverResends(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(net.Conn){
		"closed": func(net.Conn) {},
		"reset":  func(conn net.Conn) { _ = conn.(*net.TCPConn).SetLinger(0) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var arrived atomic.Int64
			gateway := gatewayTo(t, keepAliveThenDrop(t, &arrived, end), patience)
			for call := range int64(6) {
				result := gateway.Charge(t.Context(), chargeWith("tok_visa"))
				require.Equal(t, call+1, arrived.Load(), "one call, one attempt on the wire")
				if call%2 == 0 {
					require.Equal(t, checkout.OutcomeApproved, result.Outcome, result.Cause)
				} else {
					requireUnknown(t, result)
				}
			}
		})
	}
}

// The server above does provoke net/http into sending again, so that the test above can fail: an
// ordinary request with an Idempotency-Key arrives twice.
func TestTransport_WouldResend(t *testing.T) {
	t.Parallel()
	var arrived atomic.Int64
	url := keepAliveThenDrop(t, &arrived, func(net.Conn) {})
	client := NewClient()
	defer client.CloseIdleConnections()
	for range 2 {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader("{}"))
		require.NoError(t, err)
		request.Header.Set("Idempotency-Key", "key-1")
		response, err := client.Do(request)
		require.NoError(t, err)
		_, err = io.Copy(io.Discard, response.Body)
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
	}
	require.EqualValues(t, 3, arrived.Load(), "two calls, three attempts")
}

func TestCharge_AnswerBelowHTTPIsUnknown(t *testing.T) {
	t.Parallel()
	for name, reply := range map[string]string{
		"silence":           "",
		"no HTTP":           "hello\r\n\r\n",
		"half a header":     "HTTP/1.1 201 Created\r\nContent-Le",
		"half a body":       "HTTP/1.1 201 Created\r\nContent-Length: 4000\r\n\r\n" + approvedReply,
		"half a chunk":      "HTTP/1.1 201 Created\r\nTransfer-Encoding: chunked\r\n\r\nfff\r\n" + approvedReply,
		"no last chunk":     fmt.Sprintf("HTTP/1.1 201 Created\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n", len(approvedReply), approvedReply),
		"body cut at close": "HTTP/1.1 201 Created\r\n\r\n" + approvedReply[:len(approvedReply)-1],
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var arrived atomic.Int64
			url := rawServer(t, func(conn net.Conn) {
				request, err := http.ReadRequest(bufio.NewReader(conn))
				if err != nil {
					return
				}
				_, _ = io.Copy(io.Discard, request.Body)
				arrived.Add(1)
				_, _ = io.WriteString(conn, reply)
			})
			requireUnknown(t, gatewayTo(t, url, patience).Charge(t.Context(), chargeWith("tok_visa")))
			require.EqualValues(t, 1, arrived.Load())
		})
	}
}

// All calls of a burst are in flight at once, each on its own connection; the pool must keep every
// one of them for the next burst.
func TestClient_ReusesConnectionsAfterABurst(t *testing.T) {
	t.Parallel()
	const calls = 200
	var opened atomic.Int64
	var arrived sync.WaitGroup
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		arrived.Done()
		arrived.Wait()
		_, _ = io.WriteString(w, approvedReply)
	}))
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			opened.Add(1)
		}
	}
	server.Start()
	t.Cleanup(server.Close)
	gateway := gatewayTo(t, server.URL, patience)

	burst := func() {
		arrived.Add(calls)
		var group sync.WaitGroup
		for range calls {
			group.Go(func() {
				if r := gateway.Charge(t.Context(), chargeWith("tok_visa")); r.Outcome != checkout.OutcomeApproved {
					t.Error(r.Cause)
				}
			})
		}
		group.Wait()
	}
	burst()
	first := opened.Load()
	burst()
	burst()
	require.GreaterOrEqual(t, first, int64(calls))
	require.Less(t, opened.Load()-first, int64(calls/4), "a connection that is not yet back may be replaced")
}

// The same with the real simulator: hanging up on a kept-alive connection must not make a second
// attempt, which the simulator would answer with success.
func TestClient_HangUpOnAnIdleConnectionIsOneAttempt(t *testing.T) {
	t.Parallel()
	p := startProvider(t, patience)
	warm := chargeWith("tok_visa")
	warm.IdempotencyKey = "key-0"
	require.Equal(t, checkout.OutcomeApproved, p.gateway.Charge(t.Context(), warm).Outcome)

	requireUnknown(t, p.gateway.Charge(t.Context(), chargeWith("tok_charged_no_answer")))
	charges := p.list("/v1/charges")
	require.Len(t, charges, 2)
	require.Equal(t, 1, charges[1].Attempts)
}
