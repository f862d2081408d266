package admission

// Key is what the records have of a request's key.
type Key int

// The states of a key.
const (
	Unknown    Key = iota
	InProgress     // another attempt has it
	Answered
)

// Class says what a request is for. A lower one goes first.
type Class int

// The classes, in the order in which they are served.
const (
	Begun  Class = iota // finishes what was begun: provider events, look-ups
	Money               // payments, refunds, top-ups
	Change              // orders and all other changes
	List                // lists, and reads that nobody waits for
	classes
)

// Classes are all classes, in their order.
var Classes = []Class{Begun, Money, Change, List}

func (c Class) String() string {
	return [classes]string{"begun", "money", "change", "list"}[c]
}
