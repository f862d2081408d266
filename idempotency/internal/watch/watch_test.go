package watch_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/idempotency/internal/watch"
)

func woken(changed <-chan struct{}) bool {
	select {
	case <-changed:
		return true
	default:
		return false
	}
}

func TestRegistry_WakesByName(t *testing.T) {
	t.Parallel()
	var r watch.Registry
	early, stopEarly := r.Add("a")
	require.False(t, woken(early), "nothing is heard yet")
	r.Hear()
	require.True(t, woken(early), "what it has missed is unknown")

	late, stopLate := r.Add("a")
	other, stopOther := r.Add("b")
	require.True(t, woken(late), "look once the watch has begun")
	require.True(t, woken(other))
	require.False(t, woken(early))

	r.Wake("a")
	r.Wake("a")
	require.True(t, woken(early))
	require.True(t, woken(late))
	require.False(t, woken(late), "two wakes are one")
	require.False(t, woken(other))

	stopLate()
	stopLate()
	r.Wake("a")
	require.False(t, woken(late), "it is stopped")
	require.True(t, woken(early))
	r.Hear()
	require.True(t, woken(early), "again, after a connection was lost")
	require.True(t, woken(other))
	stopEarly()
	stopOther()
	require.Zero(t, r.Len())
}
