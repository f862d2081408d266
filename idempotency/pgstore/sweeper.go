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
	// SweepEvery is how often a [Sweeper] sweeps. Expired records count as absent already, so
	// only their disk space is freed later.
	SweepEvery = time.Minute
	// sweepBatch is how many rows one statement deletes: few, so that no lock is held for long
	// and no standby falls behind.
	sweepBatch = 500
	// sweepTimeout limits one batch: a hundred times what one takes.
	sweepTimeout = 5 * time.Second
)

// Sweep deletes all expired records in batches, and returns how many it deleted.
// Several processes may sweep at once: they don't wait for each other. An error
// wraps [idempotency.ErrUnavailable].
func (s *Store) Sweep(ctx context.Context) (removed int, err error) {
	for {
		n, err := s.sweepOnce(ctx)
		removed += n
		if err != nil || n < sweepBatch {
			return removed, err
		}
	}
}

func (s *Store) sweepOnce(ctx context.Context) (removed int, err error) {
	ctx, cancel := context.WithTimeout(ctx, sweepTimeout)
	defer cancel()
	tag, err := s.db.Exec(ctx, s.sql.sweep, sweepBatch)
	if err != nil {
		return 0, fmt.Errorf("sweep: %w", translate(err))
	}
	return int(tag.RowsAffected()), nil
}

// Sweeper deletes a store's expired records in the background. It is safe for concurrent use.
// Each replica may run one.
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

// WithInterval sets how often to sweep. The default is [SweepEvery].
func WithInterval(every time.Duration) SweeperOption {
	return func(s *Sweeper) { s.every = every }
}

// WithSweeperLogger sets where failed sweeps are logged. The default is slog.Default.
func WithSweeperLogger(log *slog.Logger) SweeperOption {
	return func(s *Sweeper) { s.log = log }
}

// NewSweeper returns a sweeper that is not started. It panics if the store is nil or the
// interval is not positive.
func NewSweeper(store *Store, opts ...SweeperOption) *Sweeper {
	s := &Sweeper{store: store, every: SweepEvery, log: slog.Default()}
	for _, opt := range opts {
		opt(s)
	}
	if store == nil || s.every <= 0 {
		panic(fmt.Sprintf("pgstore: store %v, sweep interval %s", store, s.every))
	}
	return s
}

// Start begins to sweep, and returns at once. It has no effect while the sweeper runs.
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

// run sweeps at random intervals, so that replicas that started together do not sweep together.
func (s *Sweeper) run(ctx context.Context) {
	for {
		pause := s.every/2 + rand.N(s.every)
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
		if _, err := s.store.Sweep(ctx); err != nil && ctx.Err() == nil {
			s.log.WarnContext(ctx, "idempotency: sweeping failed, will try again", "table", s.store.table, "error", err)
		}
	}
}
