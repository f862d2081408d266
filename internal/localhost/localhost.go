// Package localhost keeps web pages away from servers for development, which have no passwords.
package localhost

import (
	"net"
	"net/http"
	"net/netip"
	"strings"
)

// Guard refuses a request whose Host is a domain: a page of that domain has had its name point to
// this machine (DNS rebinding), so that its browser lets it read the response. An address passes,
// and so does a name without a dot, which is localhost or a service of the same network.
func Guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host, _, err := net.SplitHostPort(r.Host)
		if err != nil {
			host = strings.Trim(r.Host, "[]")
		}
		if _, err := netip.ParseAddr(host); err != nil && strings.Contains(host, ".") {
			http.Error(w, "This server is for development: its Host is an address, localhost or a name without a dot.", http.StatusMisdirectedRequest)
			return
		}
		next.ServeHTTP(w, r)
	})
}
