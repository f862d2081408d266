package outbox

import (
	"encoding/json"
	"time"

	"github.com/google/uuid"
)

// Event says that something happened.
type Event struct {
	Position  int64     // in the outbox; orders the events of one subject
	ID        uuid.UUID // what consumers elsewhere deduplicate by
	AccountID uuid.UUID
	Type      string          // such as "order.placed"
	Aggregate string          // the kind of subject, such as "order"
	Subject   uuid.UUID       // whose events are in order
	Data      json.RawMessage // the type's own content
	CreatedAt time.Time       // when its transaction began
}

// Group is a consumer group and the types of events that it acts on.
type Group struct {
	Name  string
	Types []string
}
