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
	// reconnectAfter is the mean pause before a lost connection is replaced. Waiters look by
	// themselves meanwhile.
	reconnectAfter = time.Second
	// connectTimeout limits connecting in the background.
	connectTimeout = 5 * time.Second
	// pingInterval is how long to wait for a notification before pinging: a
	// connection whose peer vanished is otherwise silent for ever.
	pingInterval = 15 * time.Second
)

// listener receives changes over one connection, which is opened for the first watch and closed
// by Close.
type listener struct {
	watches      watch.Registry
	pingInterval time.Duration

	mu     sync.Mutex
	halt   context.CancelFunc // nil until the first watch
	closed bool
	done   chan struct{}
}

// Watch implements [idempotency.Watcher].
func (s *Store) Watch(scope, key string) (changed <-chan struct{}, stop func()) {
	s.listen()
	return s.watches.Add(nameOf(scope, key))
}

// nameOf is the payload of a notification. It is a hash, because everybody who may connect to the
// database can listen, and must not learn scopes and keys.
func nameOf(scope, key string) string {
	sum := sha256.Sum256([]byte(scope + "\x00" + key)) // keys hold no NUL
	return hex.EncodeToString(sum[:16])
}

// Close sends the notifications that are left, closes the connection that [Store.Watch] opened, if
// any, and waits until that is done. Everything else continues to work. Call it before closing the
// pool.
func (s *Store) Close() {
	s.awaitNotices()
	s.mu.Lock()
	s.closed = true
	halt, done := s.halt, s.done
	s.mu.Unlock()
	if halt != nil {
		halt()
		<-done
	}
}

// listen connects in the background, so that a waiter is not delayed.
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

// hear listens on one connection until an error occurs.
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

// connect takes a connection out of the pool for good, and the pool opens another one for it: a
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

// next passes one notification on, or pings the server if there was none for long.
func (s *Store) next(ctx context.Context, conn *pgx.Conn) error {
	quiet, cancel := context.WithTimeout(ctx, s.pingInterval)
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
