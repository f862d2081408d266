package outbox

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestBackoff_HasFullJitterUnderADoublingCeiling(t *testing.T) {
	t.Parallel()
	b := backoff{base: time.Second, limit: 10 * time.Second}
	for failures, ceiling := range map[int]time.Duration{0: time.Second, 1: time.Second, 2: 2 * time.Second,
		4: 8 * time.Second, 5: 10 * time.Second, 1000: 10 * time.Second} {
		low, high := 0, 0
		for range 1000 {
			pause := b.pause(failures)
			require.Positive(t, pause)
			require.LessOrEqual(t, pause, ceiling)
			switch {
			case pause < ceiling/10:
				low++
			case pause > ceiling*9/10:
				high++
			}
		}
		require.Positive(t, low, "after %d failures no relay came back early", failures)
		require.Positive(t, high, "after %d failures no relay came back late", failures)
	}
}
