package psp

import (
	"net"
	"net/http"
	"time"
)

const (
	// dialTimeout: a provider that can't be reached in this time is away. It is short, so the
	// caller still has most of its deadline left.
	dialTimeout = 3 * time.Second
	// tlsTimeout is dialTimeout again, for the handshake's two round trips.
	tlsTimeout = 3 * time.Second
	// keepAlive finds dead peers behind slow answers sooner than the system's two hours.
	keepAlive = 15 * time.Second
	// idleTimeout is well below what servers grant idle connections (the simulator 2 minutes), so
	// that we close first and seldom meet a stale one.
	idleTimeout = 30 * time.Second
	// maxIdle is above the number of calls in flight at once, so that a burst does not end in a
	// burst of new connections. Calls beyond it are not queued: waiting for a connection would eat
	// their deadline.
	maxIdle = 512
)

// NewClient returns a client that sends each request once: no redirects, no proxy from the
// environment, and HTTP/1 only, since HTTP/2 has rules of its own for sending a request again.
func NewClient() *http.Client {
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	dialer := net.Dialer{Timeout: dialTimeout, KeepAlive: keepAlive}
	return &http.Client{
		Transport: &http.Transport{
			DialContext:         dialer.DialContext,
			TLSHandshakeTimeout: tlsTimeout,
			IdleConnTimeout:     idleTimeout,
			MaxIdleConns:        maxIdle,
			MaxIdleConnsPerHost: maxIdle,
			Protocols:           protocols,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}
