package pgstore

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/oncepay/oncepay/idempotency/internal/watch"
)

const (
	// reconnectAfter is the mean pause before a lost connection is replaced. In
	// the meantime those who wait look by themselves.
	reconnectAfter = time.Second
	// connectTimeout bounds connecting, which nobody waits for.
	connectTimeout = 5 * time.Second
	// checkEvery is how long silence is taken for peace: then the connection is
	// asked whether it is alive.
	checkEvery = 15 * time.Second
)

// listener hears of changes by one connection, which begins with the first
// watch and ends with Close.
type listener struct {
	watches    watch.Registry
	checkEvery time.Duration

	mu     sync.Mutex
	halt   context.CancelFunc // nil until the first watch
	closed bool
	done   chan struct{}
}

// Watch implements [idempotency.Notifier].
func (s *Store) Watch(scope, key string) (changed <-chan struct{}, stop func()) {
	s.listen()
	return s.watches.Add(nameOf(scope, key))
}

// nameOf is what a notification says. Everybody who may connect to the database
// can listen, and learns neither scopes nor keys by it.
func nameOf(scope, key string) string {
	sum := sha256.Sum256([]byte(scope + "\x00" + key)) // keys hold no NUL
	return hex.EncodeToString(sum[:16])
}

// Close ends the connection that [Store.Watch] opened, if it did, and waits
// until it has ended. Everything else goes on working. Call it before the pool's.
func (s *Store) Close() {
	s.mu.Lock()
	s.closed = true
	halt, done := s.halt, s.done
	s.mu.Unlock()
	if halt != nil {
		halt()
		<-done
	}
}

// listen connects in the background: whoever waits need not wait for that.
func (s *Store) listen() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.halt != nil || s.closed || s.quiet {
		return
	}
	ctx, halt := context.WithCancel(context.Background())
	done := make(chan struct{})
	s.halt, s.done = halt, done
	go func() {
		defer close(done)
		s.keepHearing(ctx)
	}()
}

func (s *Store) keepHearing(ctx context.Context) {
	for ctx.Err() == nil {
		err := s.hear(ctx)
		if ctx.Err() != nil {
			return
		}
		slog.DebugContext(ctx, "idempotency: not listening, will connect again", "table", s.table, "error", err)
		select {
		case <-ctx.Done():
		case <-time.After(reconnectAfter/2 + rand.N(reconnectAfter)):
		}
	}
}

// hear listens on one connection until it fails.
func (s *Store) hear(ctx context.Context) error {
	conn, err := s.connect(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = attempt(context.WithoutCancel(ctx), s.timeout, conn.Close) }()
	err = attempt(ctx, connectTimeout, func(ctx context.Context) error {
		_, err := conn.Exec(ctx, "LISTEN "+s.table)
		return err
	})
	if err != nil {
		return err
	}
	s.watches.Hear()
	for {
		if err := s.next(ctx, conn); err != nil {
			return err
		}
	}
}

// connect takes a connection out of the pool for good, which makes up for it: a
// listener must not make the pool smaller.
func (s *Store) connect(ctx context.Context) (*pgx.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	conn, err := s.db.Acquire(ctx)
	if err != nil {
		return nil, err
	}
	return conn.Hijack(), nil
}

// next passes one notification on, or makes sure that the silence is one.
func (s *Store) next(ctx context.Context, conn *pgx.Conn) error {
	quiet, cancel := context.WithTimeout(ctx, s.checkEvery)
	defer cancel()
	notification, err := conn.WaitForNotification(quiet)
	switch {
	case err == nil:
		s.watches.Wake(notification.Payload)
		return nil
	case ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded):
		return attempt(ctx, s.timeout, conn.Ping)
	}
	return err
}
