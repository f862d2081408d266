package outbox

import (
	"context"
	"time"
)

// RunOnce is a single pass, for tests.
func (r *Relay) RunOnce(ctx context.Context) (int, error) { return r.runOnce(ctx) }

// RunOnce is a single pass, for tests.
func (c *Consumer) RunOnce(ctx context.Context, block time.Duration) error {
	return c.runOnce(ctx, block)
}
