package outbox

import (
	"math/rand/v2"
	"time"
)

// backoff says how long to wait after failures in a row: with full jitter, so
// that those who failed together don't come back together (AWS Architecture
// Blog, "Exponential Backoff And Jitter").
type backoff struct {
	base, limit time.Duration
}

// pause is up to twice as long after each failure, and never zero.
func (b backoff) pause(failures int) time.Duration {
	ceiling := b.base
	for range failures - 1 {
		if ceiling = min(2*ceiling, b.limit); ceiling == b.limit {
			break
		}
	}
	return 1 + rand.N(ceiling)
}
