package app

import (
	"io"
	"log/slog"
	"net/http"
	"time"

	"github.com/oncepay/oncepay/idempotency/authority/arrival"
	"github.com/oncepay/oncepay/internal/httpapi"
)

const (
	// headerTimeout bounds the reading of a request's header. Clients that need longer are slow on
	// purpose ("slowloris").
	headerTimeout = 5 * time.Second

	// bodyTimeout bounds the reading of a body, of 64 KiB at most: fine for 50 kbit/s.
	bodyTimeout = 10 * time.Second

	// writeSlack is what WriteTimeout adds to the longest that a request may take, so that the
	// handlers' own deadlines come first and can say why.
	writeSlack = 10 * time.Second

	// idleTimeout keeps an unused connection longer than nginx does (15 s, keepalive_timeout of an
	// upstream), so that it is nginx that closes it: otherwise nginx would send requests into
	// connections that we are closing.
	idleTimeout = 75 * time.Second

	// maxHeaderBytes is what a browser with many cookies sends, and several times what a client of
	// the API sends. net/http adds 4 KiB.
	maxHeaderBytes = 8 << 10
)

func (a *App) newAPIServer(handler http.Handler) *http.Server {
	if a.front != nil {
		handler = a.front(handler)
	}
	return &http.Server{
		Handler:           boundBody(a.closeAtEnd(handler), bodyTimeout),
		ConnContext:       arrival.WithConn,
		ConnState:         newConnections(a.cfg.TrustedProxies).observe,
		ReadHeaderTimeout: headerTimeout,
		WriteTimeout:      bodyTimeout + httpapi.MaxBudget(a.apiConfig(nil)) + writeSlack,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
		// OPTIONS * is answered in the shape of all other errors.
		DisableGeneralOptionsHandler: true,
		ErrorLog:                     slog.NewLogLogger(a.log.Handler(), slog.LevelDebug), // clients' mistakes, such as TLS to a plain port
	}
}

// closeAtEnd has answers close their connections once the replica was told to stop (RFC 9112,
// section 9.6): a proxy then sends the next request elsewhere. http.Server.SetKeepAlivesEnabled
// would not do, as it also closes idle connections at once.
func (a *App) closeAtEnd(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if a.life.phase.Load() == phaseDraining {
			w.Header().Set("Connection", "close")
		}
		next.ServeHTTP(w, r)
	})
}

// boundBody breaks off a request whose body takes longer than limit. http.Server.ReadTimeout does
// not work here: it continues after the body, and then ends the context of a handler that is merely
// slow. The request is a copy: net/http looks at the body of its own one to see that a client still
// waits for 100 Continue, and would otherwise wait for the body before it sends an early answer.
func boundBody(next http.Handler, limit time.Duration) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Body != http.NoBody {
			connection := http.NewResponseController(w)
			_ = connection.SetReadDeadline(time.Now().Add(limit)) // a connection that can't (in a test) has no slow clients either
			r = r.WithContext(r.Context())
			r.Body = &boundedBody{ReadCloser: r.Body, done: func() { _ = connection.SetReadDeadline(time.Time{}) }}
		}
		next.ServeHTTP(w, r)
	})
}

// boundedBody calls done when the body has been read.
type boundedBody struct {
	io.ReadCloser
	done func()
}

func (b *boundedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err == io.EOF {
		b.done()
	}
	return n, err
}
