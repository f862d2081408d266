package idempotency

import "time"

// unavailableRetryAfter is about as long as it takes to notice a failover of Redis.
const unavailableRetryAfter = 2 * time.Second

// retryAfter grows with the time for which the attempt has been running: one that has run for
// long probably needs some more. It is at least a second and at most the lease, because the
// clock that wrote began may differ from ours.
func (c *call) retryAfter(began time.Time) time.Duration {
	if began.IsZero() {
		return time.Second
	}
	return max(min(time.Since(began), c.policy.Lease), time.Second)
}
