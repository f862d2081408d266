package pgstore

import "context"

// Pass is what a sweeper does at a time.
func (s *Sweeper) Pass(ctx context.Context) error { return s.pass(ctx) }
