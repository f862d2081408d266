// Package arrival knows when a request arrived, and whether its client still waits.
//
// A proxy that passes a request on to a second replica makes a second copy of it, and the first
// copy may still wait in the socket of a replica that is paused. Once the client has seen a
// refusal, the first copy must not act: the authority compares the times of the client attempts,
// and a copy whose client is gone is not executed at all.
//
//	server := http.Server{Handler: arrival.Note(proxies...)(mux), ConnContext: arrival.WithConn}
package arrival

import (
	"context"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Header is when a proxy first passed a request on: "t=" and seconds since 1970 with
// milliseconds. All copies that one proxy makes of a request have the same time. nginx:
// proxy_set_header X-Request-Start "t=${msec}".
const Header = "X-Request-Start"

// Time returns when a client attempt began: as a trusted proxy says, else now. Call it when the
// request has arrived, and look at the connection after it, so that a pause between the two makes
// no copy look newer.
//
// A proxy's time is taken as it is, also if it lies in this process's future: every copy of a
// request must have one time wherever it is read. The authority refuses what is too far from its
// own clock. Times of proxies and of replicas are compared with each other, so their clocks must
// agree to within the shortest time after which the proxy passes a request on, which is seconds.
func Time(r *http.Request, trusted []netip.Prefix) time.Time {
	now := time.Now()
	if began, ok := start(r.Header); ok && isTrusted(r.RemoteAddr, trusted) {
		return began
	}
	return now
}

func start(h http.Header) (time.Time, bool) {
	seconds, err := strconv.ParseFloat(strings.TrimPrefix(h.Get(Header), "t="), 64)
	const century22 = 4_102_444_800 // a larger number is not in seconds
	if err != nil || !(seconds > 0 && seconds < century22) {
		return time.Time{}, false
	}
	return time.UnixMilli(int64(seconds * 1000)), true
}

func isTrusted(remoteAddr string, trusted []netip.Prefix) bool {
	peer, err := netip.ParseAddrPort(remoteAddr)
	return err == nil && slices.ContainsFunc(trusted, func(p netip.Prefix) bool { return p.Contains(peer.Addr().Unmap()) })
}

type timeKey struct{}

// Note notes the [Time] of each request, for [Of]. Put it outside of all that may wait. trusted
// are the addresses of proxies that replace the header [Header] of their clients.
func Note(trusted ...netip.Prefix) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), timeKey{}, Time(r, trusted))))
		})
	}
}

// Of returns the time that was noted, or now.
func Of(ctx context.Context) time.Time {
	if noted, ok := ctx.Value(timeKey{}).(time.Time); ok {
		return noted
	}
	return time.Now()
}

type connKey struct{}

// WithConn lets [IsAbandoned] see when a client has closed its connection. Set it as
// [http.Server.ConnContext].
func WithConn(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, connKey{}, c)
}

// IsAbandoned reports whether the client has closed the connection of the request that ctx
// belongs to. net/http finds that out, too, but in another goroutine: after a pause of the
// process a buffered request could be executed first. It is false for connections that are no
// sockets.
func IsAbandoned(ctx context.Context) bool {
	conn := ctx.Value(connKey{})
	if secure, ok := conn.(interface{ NetConn() net.Conn }); ok { // of crypto/tls
		conn = secure.NetConn()
	}
	socket, ok := conn.(syscall.Conn)
	if !ok {
		return false
	}
	raw, err := socket.SyscallConn()
	if err != nil {
		return false
	}
	closed := false
	err = raw.Control(func(fd uintptr) { closed = hasLeft(fd) })
	return closed || err != nil
}
