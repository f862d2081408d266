package outbox_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/internal/outbox"
	"github.com/oncepay/oncepay/internal/testenv"
)

// lose makes the outbox as it is when a failover has lost the transactions of events.
func (s *shop) lose(events ...outbox.Event) {
	s.t.Helper()
	for _, event := range events {
		s.exec("DELETE FROM outbox WHERE event_id = $1", event.ID)
	}
}

func TestConsumer_MakesNoEffectOfAnEventThatTheOutboxHasLost(t *testing.T) {
	t.Parallel()
	s := setupShop(t, testenv.Redis(t))
	lost, kept := s.orderPlaced(), s.orderPlaced()
	s.publish(lost, kept)
	s.lose(lost)
	s.exec("UPDATE outbox SET id = DEFAULT WHERE event_id = $1", kept.ID) // draws the next position
	again := kept
	again.Position = value[int64](s.bundle, "SELECT id FROM outbox")
	s.publish(again)
	s.startConsumers("api-1")
	s.await("the event has its effect", func() bool { return s.confirmations(kept) == 1 })
	s.await("all is finished", func() bool { return s.pending(confirmations) == 0 })
	require.Zero(t, s.confirmations(lost))
	require.Equal(t, 1, s.confirmations(kept), "also under the position of before")
}

func TestFindLost_NamesTheNewerEventsThatTheOutboxLacks(t *testing.T) {
	t.Parallel()
	s := setupShop(t, testenv.Redis(t))
	var events []outbox.Event
	for range 7 {
		events = append(events, s.orderPlaced())
	}
	s.publish(events...)
	s.publish(events[6])
	s.publish(events[0], events[3]) // as oncepay outbox replay does: old ones are the last entries
	s.lose(events[1], events[4], events[6])
	for _, limit := range []int64{1, 2, 1000} {
		find := func(after int64) []outbox.Event {
			lost, err := outbox.FindLost(s.ctx, pages{s.stream, limit}, s, after)
			require.NoError(t, err)
			return lost
		}
		lost := find(events[2].Position)
		require.Len(t, lost, 2, "one is not newer, and one was published twice")
		require.Equal(t, events[6].ID, lost[0].ID, "the newest first")
		require.Equal(t, events[4].ID, lost[1].ID)
		require.Empty(t, find(events[6].Position))
	}
	s.client.Del(s.ctx, outbox.DefaultStream)
	lost, err := outbox.FindLost(s.ctx, s.stream, s, 0)
	require.NoError(t, err)
	require.Empty(t, lost, "what the stream has lost, too, nobody knows")
}

// pages reads a stream in smaller pieces.
type pages struct {
	*outbox.RedisStream
	limit int64
}

func (p pages) Newest(ctx context.Context, before outbox.EntryID, limit int64) ([]outbox.Event, outbox.EntryID, error) {
	return p.RedisStream.Newest(ctx, before, min(limit, p.limit))
}
