package console

import (
	"net"
	"net/http"
)

// guard refuses what a page from elsewhere sends: another Origin, or, after DNS rebinding, another
// Host. A program sends no Origin. The headers keep the page from being framed, and from loading
// anything that is not ours.
func guard(addr string, next http.Handler) http.Handler {
	_, port, _ := net.SplitHostPort(addr)
	own := map[string]bool{addr: true, net.JoinHostPort("localhost", port): true}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		origin := r.Header.Get("Origin")
		if !own[r.Host] || (origin != "" && origin != "http://"+r.Host) {
			http.Error(w, "The console answers its own page only, at http://"+addr, http.StatusForbidden)
			return
		}
		h := w.Header()
		h.Set("Content-Security-Policy", "default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'")
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cache-Control", "no-store")
		next.ServeHTTP(w, r)
	})
}
