package admission

import (
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
)

// TestLimiter_WhoReadsNothingHoldsNoSlot: lists that are not read take memory alone, of which each
// account has its part.
func TestLimiter_WhoReadsNothingHoldsNoSlot(t *testing.T) {
	t.Parallel()
	const list = 4 << 20
	l := New(slots)
	var unread []*Slot
	for _, account := range []uuid.UUID{ada, bob, eve} { // each takes what it can
		for {
			slot := enter(t, l, List, account)
			if slot == nil {
				break
			}
			if !slot.Answer(list) {
				slot.Leave()
				break
			}
			unread = append(unread, slot)
		}
	}
	stats := l.Stats()
	require.Zero(t, stats.InUse)
	require.Less(t, stats.Unread, maxLarge)
	require.Nil(t, enter(t, l, List, ada), "before it costs anything")
	for _, class := range []Class{Begun, Money, Change} {
		slot := enter(t, l, class, ada)
		require.NotNil(t, slot, class)
		require.True(t, slot.Answer(1000), class)
		slot.Leave()
	}
	newcomer := enter(t, l, List, eve0)
	require.NotNil(t, newcomer)
	require.True(t, newcomer.Answer(100<<10), "an ordinary list")
	for _, slot := range append(unread, newcomer) {
		slot.Leave()
	}
	require.Zero(t, l.Stats().Unread)
}

// TestLimiter_AnAnswerThatFindsNoRoomKeepsItsSlot: what was changed is answered.
func TestLimiter_AnAnswerThatFindsNoRoomKeepsItsSlot(t *testing.T) {
	t.Parallel()
	l := New(slots)
	slot := enter(t, l, Change, ada)
	require.False(t, slot.Answer((maxLarge+1)*piece))
	require.Equal(t, 1, l.Stats().InUse)
	slot.Leave()
	require.Zero(t, l.Stats().InUse)
}
