package pgstore

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"
)

const (
	// SweepEvery is how often a [Sweeper] looks. Expired records are absent
	// already, so it is disk space alone that waits.
	SweepEvery = time.Minute
	// sweepBatch is how many rows one statement removes: few, so that no lock is
	// held for long and no replica of the database falls behind.
	sweepBatch = 500
	// sweepTimeout bounds one batch: a hundred times what one takes, and nobody
	// waits for it.
	sweepTimeout = 5 * time.Second
)

// Sweep removes expired records, limit at most in one statement, and says how
// many. Several processes may sweep at once: they don't wait for each other. An
// error wraps [idempotency.ErrUnavailable].
func (s *Store) Sweep(ctx context.Context, limit int) (removed int, err error) {
	ctx, cancel := context.WithTimeout(ctx, sweepTimeout)
	defer cancel()
	tag, err := s.db.Exec(ctx, s.sql.sweep, limit)
	if err != nil {
		return 0, fmt.Errorf("sweep: %w", translate(err))
	}
	return int(tag.RowsAffected()), nil
}

// Sweeper removes a store's expired records in the background. Its methods may
// be called from any goroutine. Each replica may run one.
type Sweeper struct {
	store *Store
	every time.Duration
	log   *slog.Logger

	mu   sync.Mutex
	halt context.CancelFunc // nil while stopped
	done chan struct{}
}

// SweeperOption configures a [Sweeper].
type SweeperOption func(*Sweeper)

// WithInterval replaces [SweepEvery].
func WithInterval(every time.Duration) SweeperOption {
	return func(s *Sweeper) { s.every = every }
}

// WithSweeperLogger replaces slog.Default, which is told when sweeping fails.
func WithSweeperLogger(log *slog.Logger) SweeperOption {
	return func(s *Sweeper) { s.log = log }
}

// NewSweeper makes a sweeper that doesn't run yet.
func NewSweeper(store *Store, opts ...SweeperOption) *Sweeper {
	s := &Sweeper{store: store, every: SweepEvery, log: slog.Default()}
	for _, opt := range opts {
		opt(s)
	}
	return s
}

// Start begins to sweep, and returns at once. It has no effect while the
// sweeper runs.
func (s *Sweeper) Start() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.halt != nil {
		return
	}
	ctx, halt := context.WithCancel(context.Background())
	done := make(chan struct{})
	s.halt, s.done = halt, done
	go func() {
		defer close(done)
		s.run(ctx)
	}()
}

// Stop ends sweeping and waits until it has ended. It may be called again.
func (s *Sweeper) Stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.halt == nil {
		return
	}
	s.halt()
	<-s.done
	s.halt = nil
}

// run spreads its passes, so that replicas that started together don't sweep
// together.
func (s *Sweeper) run(ctx context.Context) {
	for {
		pause := s.every/2 + rand.N(s.every)
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
		if err := s.pass(ctx); err != nil && ctx.Err() == nil {
			s.log.WarnContext(ctx, "idempotency: sweeping failed, will try again", "table", s.store.table, "error", err)
		}
	}
}

// pass removes all that has expired, batch by batch.
func (s *Sweeper) pass(ctx context.Context) error {
	for {
		removed, err := s.store.Sweep(ctx, sweepBatch)
		if err != nil || removed < sweepBatch {
			return err
		}
	}
}
