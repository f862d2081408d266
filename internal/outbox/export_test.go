package outbox

import (
	"context"
	"time"
)

// RunOnce is a single pass, for tests.
func (r *Relay) RunOnce(ctx context.Context) (int, error) { return r.runOnce(ctx) }

// Upkeep is due at the next pass, for tests.
func (r *Relay) Upkeep() { r.kept = time.Time{} }

// RunOnce is a single pass, for tests.
func (c *Consumer) RunOnce(ctx context.Context, block time.Duration) error {
	return c.runOnce(ctx, block)
}
