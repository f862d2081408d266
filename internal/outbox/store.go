package outbox

import (
	"context"
	"time"

	"github.com/google/uuid"
)

// Store keeps events until they are published. Several relays, in several
// processes, use one at once.
type Store interface {
	// Claim takes up to limit events for the duration of the lease, by the
	// store's clock, oldest first. It MUST give only the first unpublished event
	// of a subject, and none that is claimed, pausing or dead.
	Claim(ctx context.Context, claim uuid.UUID, limit int, lease time.Duration) ([]Event, error)

	// MarkPublished says that these events were published. Like the methods below
	// it MUST ignore events that this claim no longer holds.
	MarkPublished(ctx context.Context, claim uuid.UUID, positions []int64) error

	// MarkRefused counts an attempt. The event pauses, or is dead until a human
	// retries it.
	MarkRefused(ctx context.Context, claim uuid.UUID, refusal Refusal) error

	// Release makes all that the claim still holds due again.
	Release(ctx context.Context, claim uuid.UUID) error

	// Listen calls wake whenever there may be new events, and once when it has
	// begun to. It returns when the context ends or it can't hear any more.
	Listen(ctx context.Context, wake func()) error

	// Backlog measures what is not published.
	Backlog(ctx context.Context) (Backlog, error)
}

// Refusal is an event that the publisher would not take.
type Refusal struct {
	Position int64
	Reason   string
	Pause    time.Duration // until the next attempt
	Dead     bool          // there is none
}

// Backlog is what is not published.
type Backlog struct {
	Waiting int64         // events that are not dead
	Oldest  time.Duration // age of the oldest of these; zero if there is none
	Dead    int64
}

// Admin is what a human may do to the outbox.
type Admin interface {
	// Unpublished gives up to limit events, dead ones first, then the oldest.
	Unpublished(ctx context.Context, limit int) ([]Unpublished, error)

	// Backlog measures what is not published.
	Backlog(ctx context.Context) (Backlog, error)

	// Retry makes refused events due at once, with no attempts counted; without
	// positions, all of them. It gives their number.
	Retry(ctx context.Context, positions []int64) (int64, error)

	// Replay makes all events unpublished that were published within this long,
	// and takes back the claims of those that are being published. It MUST do so
	// at one instant, or a subject's events could overtake each other.
	Replay(ctx context.Context, since time.Duration) (int64, error)
}

// Unpublished is an event in the eyes of a human.
type Unpublished struct {
	Position  int64
	Type      string
	Subject   uuid.UUID
	State     State
	Age       time.Duration
	Attempts  int
	LastError string
}

// State is why an event is not published yet.
type State string

// The states of an unpublished event.
const (
	StateWaiting State = "waiting" // for a relay, or for its subject's earlier events
	StateClaimed State = "claimed" // a relay is publishing it
	StatePausing State = "pausing" // was refused and will be tried again
	StateDead    State = "dead"    // was refused too often
	StateBlocked State = "blocked" // its subject has a dead letter before it
)
