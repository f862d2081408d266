package outbox

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestPace_GrowsWithTheLoad(t *testing.T) {
	t.Parallel()
	steady := func(perSecond int) (pause time.Duration) {
		p, now := pace{}, time.Now()
		for range 10 * perSecond {
			now = now.Add(time.Second / time.Duration(perSecond))
			pause = p.after(1, now)
		}
		return pause
	}
	require.InDelta(t, 11*time.Millisecond, steady(10), float64(time.Millisecond))
	require.InDelta(t, 46*time.Millisecond, steady(50), float64(time.Millisecond))
	require.Equal(t, longestPause, steady(1000))
}

func TestPace_ForgetsWhatIsLongAgo(t *testing.T) {
	t.Parallel()
	p, now := pace{}, time.Now()
	p.after(1000, now)
	require.InDelta(t, pausePerEvent, p.after(1, now.Add(10*time.Second)), float64(time.Millisecond))
}
