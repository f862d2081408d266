package console

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/oncepay/oncepay/idempotency/transport"
	"github.com/oncepay/oncepay/internal/stack"
)

const (
	// headerTimeout drops clients that connect and say nothing.
	headerTimeout = 5 * time.Second
	// answerTimeout is longer than nginx waits for a payment: the server has to give up first.
	answerTimeout = 100 * time.Second
	// retryTimeout bounds a request that is sent until it is answered.
	retryTimeout = 30 * time.Second
)

// Switchboard is what the console needs of a [stack.Stack].
type Switchboard interface {
	Do(ctx context.Context, verb string, args ...string) error
	Status(context.Context) (services []stack.ServiceStatus, faults []string, err error)
	Where() *stack.Topology
}

// Server is the console. Safe for concurrent use.
type Server struct {
	board func(out io.Writer) (Switchboard, error)
	mu    sync.Mutex
	state state

	shop    shop // sends once
	patient shop // retries as a client should

	stopping   context.Context // ends what runs in the background
	background sync.WaitGroup
}

// Run serves the console of the local deployment in a folder until ctx ends. Each question and
// command reads the deployment's state anew: other commands change it, too.
func Run(ctx context.Context, dir string) error {
	board := func(out io.Writer) (Switchboard, error) { return stack.New(stack.Options{Dir: dir, Out: out}) }
	it, err := board(nil)
	if err != nil {
		return err
	}
	s := New(ctx, it.Where(), board)
	defer s.background.Wait()
	server := &http.Server{Addr: it.Where().Addr(stack.Console), Handler: s.Handler(), ReadHeaderTimeout: headerTimeout,
		BaseContext: func(net.Listener) context.Context { return ctx }} // so that streams of events end with us
	defer context.AfterFunc(ctx, func() { _ = server.Close() })() // a page connects again by itself
	if err := server.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve the console: %w", err)
	}
	return nil
}

// New makes a console that works until ctx ends, and answers at its address alone. The function
// returns the deployment as it is now, which tells out what it has done.
func New(ctx context.Context, at *stack.Topology, board func(out io.Writer) (Switchboard, error)) *Server {
	wire := &http.Transport{}
	return &Server{board: board, stopping: ctx, state: state{published: -1, flows: map[int64]map[connection]int{}},
		shop:    shop{&http.Client{Transport: wire, Timeout: answerTimeout}, at},
		patient: shop{&http.Client{Transport: &transport.Transport{Base: wire}, Timeout: retryTimeout}, at}}
}

// Handler answers the page and its buttons.
func (s *Server) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", s.servePage)
	mux.Handle("GET /static/", static)
	mux.HandleFunc("GET /events", s.serveEvents)
	mux.Handle("POST /board", button(s.breakIt))
	mux.Handle("POST /mend", button(s.mendIt))
	mux.Handle("POST /shopper", button(s.shopIt))
	mux.Handle("POST /demo", button(s.demonstrate))
	mux.Handle("POST /key", button(s.lookAt))
	mux.HandleFunc("POST /v1/traces", s.serveTraces)
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprintln(w, "ok") })
	return guard(s.shop.at.Addr(stack.Console), mux)
}

// button does what a form of the page is for, and returns what the page says about it.
type button func(ctx context.Context, form url.Values) (said string, err error)

func (press button) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	_ = r.ParseForm() // what cannot be read is no button
	// A page that is closed must not leave a command half done.
	said, err := press(context.WithoutCancel(r.Context()), r.PostForm)
	if err != nil {
		http.Error(w, err.Error(), http.StatusConflict)
		return
	}
	_, _ = fmt.Fprintln(w, said) // the browser may be gone
}
