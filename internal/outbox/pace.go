package outbox

import (
	"math"
	"time"
)

const (
	// paceMemory is how long an event counts. It is short, so that long pauses soon follow the
	// first events of many.
	paceMemory = 300 * time.Millisecond

	// pausePerEvent is how much longer each event that counts makes the pause between two passes.
	pausePerEvent = 3 * time.Millisecond

	// longestPause bounds the pause, which 90 events a second reach.
	longestPause = 80 * time.Millisecond
)

// pace makes passes rarer as the load grows, so that one pass, with its fixed cost at PostgreSQL
// and Redis, serves several events: at 20 events a second they wait for up to 20 ms, at 90 and more
// for up to 80 ms. A lone event does not wait. A full batch is followed by the next at once.
type pace struct {
	load float64 // events; one counts less the older it is
	at   time.Time
}

// after is the pause after a pass with n events that ended now.
func (p *pace) after(n int, now time.Time) time.Duration {
	p.load = p.load*math.Exp(-now.Sub(p.at).Seconds()/paceMemory.Seconds()) + float64(n)
	p.at = now
	return min(time.Duration(p.load*float64(pausePerEvent)), longestPause)
}
