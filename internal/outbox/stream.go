package outbox

import (
	"context"
	"errors"
)

var (
	// ErrLeased says that another relay holds the lease.
	ErrLeased = errors.New("another relay holds the lease of the outbox")

	// ErrRefused marks errors of a consumer that are the event's fault and not that of a server
	// that is away: to try again at once is no use.
	ErrRefused = errors.New("the event is refused")
)

// Publisher adds events to a stream.
type Publisher interface {
	// Publish adds all events, in their order, or none. After an error it is unknown which. It
	// MUST NOT retry, and MUST return soon after the context ends.
	Publish(ctx context.Context, events []Event) error
}

// Stream is where events are published and read from by consumer groups. It may lose anything at
// any time.
type Stream interface {
	Publisher

	// State reads how far the groups have come.
	State(ctx context.Context) (StreamState, error)

	// Trim removes at most limit entries before an ID, the oldest first.
	Trim(ctx context.Context, before EntryID, limit int64) error
}

// StreamState is what a stream holds, and what its groups have done.
type StreamState struct {
	Exists bool
	Length int64
	Last   EntryID            // of the last entry that was ever added
	Open   map[string]EntryID // by group: it was given all entries before, and acknowledged them
}

// Handled says whether a group has come past an entry, or will never be given it because the stream
// has lost it.
func (s StreamState) Handled(group string, last EntryID) bool {
	open, known := s.Open[group]
	return !s.Exists || s.Last.Before(last) || known && last.Before(open)
}

// Trimmable is the ID before which all of these groups, and any others, have handled everything. It
// is the zero ID when a group is not there.
func (s StreamState) Trimmable(groups []Group) (before EntryID) {
	for _, group := range groups {
		if _, known := s.Open[group.Name]; !known {
			return EntryID{}
		}
	}
	before = s.Last.Next()
	for _, open := range s.Open {
		if open.Before(before) {
			before = open
		}
	}
	return before
}
