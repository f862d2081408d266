package outbox

import (
	"math"
	"time"
)

const (
	// pausePerEvent is how much longer each event of the last second makes the pause between two
	// passes.
	pausePerEvent = 900 * time.Microsecond

	// longestPause bounds the pause, which 90 events a second reach.
	longestPause = 80 * time.Millisecond
)

// pace makes passes rarer as the load grows, so that one pass, with its fixed cost at PostgreSQL
// and Redis, serves several events: at 20 events a second they wait for up to 18 ms, at 90 and more
// for up to 80 ms. A lone event does not wait. A full batch is followed by the next at once.
type pace struct {
	load float64 // events of about the last second: one counts less the older it is
	at   time.Time
}

// after is the pause after a pass with n events that ended now.
func (p *pace) after(n int, now time.Time) time.Duration {
	p.load = p.load*math.Exp(-now.Sub(p.at).Seconds()) + float64(n)
	p.at = now
	return min(time.Duration(p.load*float64(pausePerEvent)), longestPause)
}
