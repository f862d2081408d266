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
	// Begun finishes what was begun: provider events, requests whose key is known, and reads of a
	// key, an order or a payment.
	Begun  Class = iota
	Money        // payments, refunds, top-ups
	Change       // orders, all other changes, and reads of one product, customer or wallet
	List         // lists
	classes
)

// Classes are all classes, in their order.
var Classes = []Class{Begun, Money, Change, List}

func (c Class) String() string {
	return [classes]string{"begun", "money", "change", "list"}[c]
}
