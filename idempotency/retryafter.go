package idempotency

import "time"

// unavailableRetryAfter is about as long as it takes to notice a failover of Redis.
const unavailableRetryAfter = 2 * time.Second

// RetryAfter is when to ask again for something that has been in progress since began. It grows
// with the time that this has taken: what has run for long probably needs some more. It is at least
// a second and at most most, because the clock that wrote began may differ from ours. A zero began
// is unknown.
func RetryAfter(began time.Time, most time.Duration) time.Duration {
	if began.IsZero() {
		return time.Second
	}
	return max(min(time.Since(began), most), time.Second)
}
