package outbox

import (
	"encoding/json"
	"time"

	"github.com/google/uuid"
)

// Event tells that something happened.
type Event struct {
	Position  int64     // in the outbox; known to the relay only
	ID        uuid.UUID // what consumers deduplicate by
	AccountID uuid.UUID
	Type      string          // such as "order.placed"
	Aggregate string          // the kind of subject, such as "order"
	Subject   uuid.UUID       // whose events are in order
	Data      json.RawMessage // the type's own content
	CreatedAt time.Time
	Attempts  int // how often it was refused; known to the relay only
}
