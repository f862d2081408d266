package outbox

import (
	"context"
	"errors"
)

// ErrUnavailable marks errors that are the broker's and not the event's: it is
// away, too slow, full, or what it did is unknown.
var ErrUnavailable = errors.New("the broker is unavailable")

// Publisher sends events to a broker.
type Publisher interface {
	// Publish sends events of different subjects, in any order, and gives one
	// error for each: nil when the broker has it, one that wraps ErrUnavailable,
	// or any other for an event that is refused for what it is. It MUST NOT
	// retry, and MUST return soon after the context ends.
	Publish(ctx context.Context, events []Event) []error
}
