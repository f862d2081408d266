package pgstore

import (
	"context"
	"time"
)

// Pass is what a sweeper does at a time.
func (s *Sweeper) Pass(ctx context.Context) error { return s.pass(ctx) }

// WithCheckEvery has silence taken for peace for another time.
func WithCheckEvery(d time.Duration) Option {
	return func(s *Store) { s.checkEvery = d }
}
