package timeline

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/oncepay/oncepay/internal/outbox"
	"github.com/oncepay/oncepay/internal/postgres"
	"github.com/oncepay/oncepay/internal/wait"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func logged() (*Timeline, *bytes.Buffer) {
	log := &bytes.Buffer{}
	return New(slog.New(slog.NewTextHandler(log, nil))), log
}

func TestTimeline_IsThatOfTheLastConnection(t *testing.T) {
	t.Parallel()
	followed, log := logged()
	require.Empty(t, followed.Name())
	require.Zero(t, followed.Number())
	first := postgres.Timeline{System: 7, Number: 1}
	followed.Follow(first)
	followed.Follow(first)
	require.Equal(t, first.String(), followed.Name())
	require.Empty(t, log.String(), "nothing was failed over")

	promoted, other := postgres.Timeline{System: 7, Number: 2}, postgres.Timeline{System: 8, Number: 2}
	followed.Follow(promoted)
	require.Equal(t, promoted.String(), followed.Name())
	require.InDelta(t, 2, followed.Number(), 0)
	followed.Follow(other)
	require.Equal(t, other.String(), followed.Name())
	require.Equal(t, 2, bytes.Count(log.Bytes(), []byte("failed over or restored")))
}

func TestTimeline_KeepsTheFirstBeginningThatIsNotSearched(t *testing.T) {
	t.Parallel()
	followed, _ := logged()
	followed.Begin(postgres.Beginning{Published: 3})
	followed.Begin(postgres.Beginning{Published: 9}) // which does not block
	require.EqualValues(t, 3, (<-followed.begun).Published)
}

// shortStream is a stream of a few events that can't be read at first.
type shortStream struct {
	failures int
	events   []outbox.Event
}

func (s *shortStream) Newest(context.Context, outbox.EntryID, int64) ([]outbox.Event, outbox.EntryID, error) {
	if s.failures--; s.failures >= 0 {
		return nil, outbox.EntryID{}, errors.New("away")
	}
	return s.events, outbox.EntryID{}, nil
}

type kept map[uuid.UUID]bool

func (k kept) Kept(context.Context, []int64) (map[uuid.UUID]bool, error) { return k, nil }

func TestLossReporter_NamesWhatTheOutboxLacks(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		followed, log := logged()
		old, there, lost := outbox.Event{ID: uuid.New(), Position: 3}, outbox.Event{ID: uuid.New(), Position: 4}, outbox.Event{ID: uuid.New(), Position: 5}
		stream := &shortStream{failures: 2, events: []outbox.Event{lost, there, old}}
		reporter := NewLossReporter(followed, stream, kept{there.ID: true})
		reporter.Start(t.Context())
		defer reporter.Stop()
		followed.Begin(postgres.Beginning{Published: 3})
		synctest.Wait()
		require.Zero(t, followed.Lost(), "the stream can't be read")
		require.NoError(t, wait.Pause(t.Context(), 3*lossInterval))
		synctest.Wait()
		require.InDelta(t, 1, followed.Lost(), 0)
		require.Contains(t, log.String(), lost.ID.String())
		require.NotContains(t, log.String(), there.ID.String())
		require.NotContains(t, log.String(), old.ID.String(), "it was published before the timeline began")
	})
}
