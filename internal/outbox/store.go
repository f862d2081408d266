package outbox

import (
	"context"
	"time"

	"github.com/google/uuid"
)

// Store is the relays' view of the outbox. Relays in several processes use one at once. Time is the
// store's.
type Store interface {
	// Lease takes or renews the lease of the outbox for an owner and returns the position up to
	// which events are published, or ErrLeased while another owner holds it.
	Lease(ctx context.Context, owner uuid.UUID, lease time.Duration) (published int64, err error)

	// Release ends the owner's lease, if it holds it.
	Release(ctx context.Context, owner uuid.UUID) error

	// Read returns the first events after a position, in order, and the position up to which these
	// are all: an event that is committed later MUST come after it. So Read waits until the
	// transactions have ended that may still commit an earlier one.
	Read(ctx context.Context, after int64, limit int) (events []Event, last int64, err error)

	// Advance says that events are published up to a position, and renews the lease. It returns
	// ErrLeased, and changes nothing, if the owner lost the lease, or if the position is no longer
	// the one to start from.
	Advance(ctx context.Context, owner uuid.UUID, from, to int64, lease time.Duration) error

	// Backlog measures what is not published.
	Backlog(ctx context.Context) (Backlog, error)

	GroupStore
}

// GroupStore knows which events each consumer group has handled.
type GroupStore interface {
	// AdvanceGroup moves a group's cursor over the published events that the group has handled, to
	// before the first one that is missing. It looks at no more than limit events.
	AdvanceGroup(ctx context.Context, group Group, limit int) (Progress, error)

	// Missing returns the first published events after a position, up to another, that the group
	// has not handled, in order.
	Missing(ctx context.Context, group Group, after, last int64, limit int) ([]Event, error)

	// DueDeadLetters returns refused events that are to be tried again now, in order. It returns
	// each once, and again after a minute if it is still refused.
	DueDeadLetters(ctx context.Context) ([]Event, error)

	// Lag measures what a group has not handled.
	Lag(ctx context.Context, group Group) (Lag, error)
}

// Progress is how far a group has come.
type Progress struct {
	Cursor   int64 // everything of the group's types at or before it was had
	More     bool  // the limit was reached
	Complete bool  // nothing that was looked at is missing
}

// Backlog is what is not published.
type Backlog struct {
	Published int64         // the position up to which events are published
	Waiting   int64         // events after it, counted up to 100,000
	Oldest    time.Duration // age of the oldest of these; zero if there is none
}

// Lag is what a consumer group has not had.
type Lag struct {
	Cursor   int64         // the group's cursor
	Events   int64         // events of its types after it that it has not had, counted up to 100,000
	Oldest   time.Duration // age of the oldest of these; zero if there is none
	Retrying int64         // dead letters that are tried again by themselves
	Dead     int64         // dead letters that wait for a human
}

// Admin is what a human may do to the outbox.
type Admin interface {
	Backlog(ctx context.Context) (Backlog, error)
	Lag(ctx context.Context, group Group) (Lag, error)

	// DeadLetters returns up to limit refused events, dead ones first.
	DeadLetters(ctx context.Context, limit int) ([]DeadLetter, error)

	// Retry makes dead letters due, with no attempts counted; without positions, all of them. It
	// returns the position of each one, once for each group that refused the event.
	Retry(ctx context.Context, positions []int64) ([]int64, error)

	// Replay makes all events unpublished that happened within this long, and returns their
	// number.
	Replay(ctx context.Context, since time.Duration) (int64, error)
}

// DeadLetter is an event that a consumer group refused.
type DeadLetter struct {
	Group     string
	Position  int64
	Type      string
	Subject   uuid.UUID
	Age       time.Duration
	Attempts  int
	RetryAt   *time.Time // nil: dead, until a human retries it
	LastError string
}
