package outbox

import (
	"context"
	"fmt"

	"github.com/google/uuid"
)

// lostBatch is how many entries of the stream are compared at a time.
const lostBatch = 1000

// NewestReader reads a stream from its end.
type NewestReader interface {
	// Newest returns up to limit events before an entry, the newest first, and the entry to go on
	// from; the zero entry begins with the last one, and is returned after the first one.
	Newest(ctx context.Context, before EntryID, limit int64) ([]Event, EntryID, error)
}

// Keeper says which events are in the outbox.
type Keeper interface {
	Kept(ctx context.Context, positions []int64) (map[uuid.UUID]bool, error)
}

// FindLost returns the events of a stream after a position that the outbox does not have: a
// database that was failed over or restored has lost them, with all that their transactions wrote.
// The position is the relay's cursor at that time, as a lost event is newer than it. The whole
// stream is read, because old events are published again after newer ones. What was lost before it
// was published is not found, nor is what the stream has lost, too.
func FindLost(ctx context.Context, stream NewestReader, outbox Keeper, after int64) (lost []Event, err error) {
	seen := map[uuid.UUID]bool{} // an event may have been published twice
	for before := (EntryID{}); ; {
		var events []Event
		if events, before, err = stream.Newest(ctx, before, lostBatch); err != nil {
			return lost, fmt.Errorf("read the stream: %w", err)
		}
		if newer := newerThan(events, after); len(newer) > 0 {
			kept, err := outbox.Kept(ctx, positionsOf(newer))
			if err != nil {
				return lost, fmt.Errorf("compare the stream with the outbox: %w", err)
			}
			for _, event := range newer {
				if !kept[event.ID] && !seen[event.ID] {
					lost = append(lost, event)
				}
				seen[event.ID] = true
			}
		}
		if before == (EntryID{}) {
			return lost, nil
		}
	}
}

func newerThan(events []Event, position int64) (newer []Event) {
	for _, event := range events {
		if event.Position > position {
			newer = append(newer, event)
		}
	}
	return newer
}

func positionsOf(events []Event) []int64 {
	positions := make([]int64, len(events))
	for i, event := range events {
		positions[i] = event.Position
	}
	return positions
}
