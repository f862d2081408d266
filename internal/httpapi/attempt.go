package httpapi

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/oncepay/oncepay/internal/checkout"
)

// A proxy that passes a request on to a second replica makes a second copy of it, and the first
// copy may still wait in the socket of a replica that is paused. Once the client has seen a
// refusal, the first copy must not act: the store compares the times of the client attempts, and a
// copy whose client is gone is not executed at all. The time is noted before the look at the
// connection, so that a pause between the two makes no copy look newer.
//
// A proxy's time is taken as it is, also if it lies in this replica's future: every copy of a
// request must have one time wherever it is read. The store refuses what is too far from its own
// clock. Times of proxies and of replicas are compared with each other, so their clocks must agree
// to within the shortest time after which the proxy passes a request on, which is seconds.

// headerRequestStart is when the proxy first passed the request on: "t=" and seconds since 1970
// with milliseconds. All copies that one proxy makes of a request have the same time.
const headerRequestStart = "X-Request-Start"

var (
	errAbandoned = problem{status: http.StatusServiceUnavailable, code: "request_abandoned", retryAfter: checkout.RetryHint,
		detail: "The client closed the connection before the request was executed. Nothing was done."}
	errTooOld = problem{status: http.StatusServiceUnavailable, code: "request_too_old", retryAfter: checkout.RetryHint,
		detail: "The request waited too long before it was executed. Nothing was done. Send it again."}
)

// timeAttempt notes when the client attempt began: as a trusted proxy says, else now.
func (s *Server) timeAttempt(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		attemptedAt := time.Now()
		if began, ok := requestStart(r.Header); ok && s.isTrusted(r.RemoteAddr) {
			attemptedAt = began
		}
		exchangeOf(r.Context()).attemptedAt = attemptedAt
		next.ServeHTTP(w, r)
	})
}

func requestStart(h http.Header) (time.Time, bool) {
	seconds, err := strconv.ParseFloat(strings.TrimPrefix(h.Get(headerRequestStart), "t="), 64)
	const century22 = 4_102_444_800 // a larger number is not in seconds
	if err != nil || !(seconds > 0 && seconds < century22) {
		return time.Time{}, false
	}
	return time.UnixMilli(int64(seconds * 1000)), true
}

func (s *Server) isTrusted(remoteAddr string) bool {
	peer, err := netip.ParseAddrPort(remoteAddr)
	return err == nil && slices.ContainsFunc(s.cfg.TrustedProxies, func(p netip.Prefix) bool { return p.Contains(peer.Addr().Unmap()) })
}

// refuseStale stops a change that no client waits for any more, before it claims its key. Without a
// key, nothing else stops an older copy.
func (s *Server) refuseStale(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case s.policyOf(r) == nil:
		case time.Since(exchangeOf(r.Context()).attemptedAt) > checkout.MaxAttemptAge:
			s.fail(w, r, errTooOld)
			return
		case errors.Is(r.Context().Err(), context.Canceled) || isClosed(r.Context()):
			s.fail(w, r, errAbandoned)
			return
		}
		next.ServeHTTP(w, r)
	})
}

type connKey struct{}

// WithConn lets the server see when a client has closed its connection. Set it as
// [http.Server.ConnContext].
func WithConn(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, connKey{}, c)
}

// isClosed reports whether the client has closed the connection of the request that ctx belongs to.
// net/http finds that out, too, but in another goroutine: after a pause of the process a buffered
// request could be executed first.
func isClosed(ctx context.Context) bool {
	conn, ok := ctx.Value(connKey{}).(syscall.Conn)
	if !ok {
		return false
	}
	raw, err := conn.SyscallConn()
	if err != nil {
		return false
	}
	closed := false
	err = raw.Control(func(fd uintptr) { closed = hasLeft(fd) })
	return closed || err != nil
}
