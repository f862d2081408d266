// Package verify decides whether a campaign kept every promise. Its inputs are the clients' journal, the rows of the database, the
// provider's own list and the event stream; its rules are pure functions of those, each tested with planted anomalies.
package verify

import (
	"fmt"
	"time"

	"github.com/oncepay/oncepay/loadtest/faults/journal"
)

// Rule is a promise.
type Rule string

// The rules.
const (
	OneHistory    Rule = "each key's history fits one effect and one answer"
	WaitedFor     Rule = "who is told to wait has somebody to wait for"
	AnswersKept   Rule = "every answer seen is in PostgreSQL, byte for byte"
	RefusedNoting Rule = "a final 4xx has no effect"
	NoOrphans     Rule = "every effect belongs to one key"
	OneCharge     Rule = "charges and payments in bijection"
	OneRefund     Rule = "provider refunds and refunds in bijection"
	LedgerZero    Rule = "ledger: zero per transaction, one per movement"
	WalletsRight  Rule = "wallets hold what was moved"
	StockRight    Rule = "stock conserved, never negative"
	OrdersRight   Rule = "orders say what their payments and refunds say"
	NoticedOnce   Rule = "each event of the provider's is acted upon once"
	OneHolder     Rule = "only its holder changes a Redis record"
	LeaseKept     Rule = "a living attempt keeps its lease"
	FailsClosed   Rule = "what moves money is refused while Redis is away"
	Served        Rule = "who hangs up is served nevertheless"
	NothingOpen   Rule = "no key in progress, no payment processing"
	EachAnnounced Rule = "each change has its one event"
	EventsOnce    Rule = "every event published, in order, effective once"
	Resources     Rule = "no goroutine, connection or waiter left over"
	Recovery      Rule = "service back within 10 s of healing, 5 s of a death"
	Orphans       Rule = "a dead replica's keys decided within lease + 2 s"
	Decided       Rule = "every key decided in the end"
	Proof         Rule = "the run proves something"
)

// Rules are all of them, in the order of a report.
var Rules = []Rule{OneHistory, WaitedFor, AnswersKept, RefusedNoting, NoOrphans, OneCharge, OneRefund, LedgerZero, WalletsRight, StockRight,
	OrdersRight, NoticedOnce, OneHolder, LeaseKept, FailsClosed, Served, NothingOpen, EachAnnounced, EventsOnce, Resources, Recovery, Orphans, Decided, Proof}

// Violation is a broken promise with the evidence. Key is of the history that shows it, if there is one.
type Violation struct {
	Rule    Rule   `json:"rule"`
	Account string `json:"account,omitempty"`
	Key     string `json:"key,omitempty"`
	Detail  string `json:"detail"`
}

func (v Violation) String() string { return fmt.Sprintf("%s: %s %s", v.Rule, v.Detail, v.Key) }

func broken(rule Rule, format string, args ...any) Violation {
	return Violation{Rule: rule, Detail: fmt.Sprintf(format, args...)}
}

// KeyID is a key in its scope.
type KeyID struct{ Account, Key string }

// of names the key whose history shows the violation.
func (v Violation) of(k KeyID) Violation {
	v.Account, v.Key = k.Account, k.Key
	return v
}

// Books are what the system and the provider hold after the run.
type Books struct {
	Keys         []KeyRow
	Orders       []Order
	Payments     []Payment
	Refunds      []Refund
	TopUps       []TopUp
	Transactions []Transaction
	Wallets      map[string]int64 // minor units by customer
	Products     []Product
	Events       []Event
	Streams      []Stream       // the last one is there; others were read before Redis lost them
	Confirmed    map[string]int // order confirmations by order
	Noticed      map[string]int // notices to the warehouse by order
	Notices      []Notice       // the provider's events that came
	Charges      []Charge       // the provider's
	PSPRefunds   []Charge
	Pending      []string // Redis records in progress
}

// The rows, as far as the rules need them. Amounts are in minor units.
type (
	// KeyRow is the authority's row of a key.
	KeyRow struct {
		KeyID
		Operation      string // place_order and so on, as the service calls it
		Status         string // in_progress, completed or failed
		ResponseStatus int
		Body           string // SHA-256 of the kept body, in hexadecimal
		Resource       string // ID in the kept body
	}
	// Order is an order.
	Order struct {
		ID, Account, Customer, Status string
		Total                         int64
		Items                         map[string]int64 // quantity by SKU
	}
	// Payment is a payment.
	Payment struct {
		ID, Order, Customer, Method, Status string
		Amount, Refunded                    int64
	}
	// Refund is a refund.
	Refund struct {
		ID, Payment, Order, Status string
		Amount                     int64
	}
	// TopUp is money put into a wallet.
	TopUp struct {
		ID, Customer string
		Amount       int64
	}
	// Transaction is one of the ledger's.
	Transaction struct {
		ID, Subject string
		Sum, Volume int64 // of its entries; the volume is that of the debits
	}
	// Product is a product and what the campaign began with.
	Product struct {
		Account, SKU   string
		Opening, Stock int64
	}
	// Event is a row of the outbox.
	Event struct {
		ID, Subject, Type string
		Created           time.Time
		Published         bool
		About             string // ID of what changed
	}
	// Notice is an event of the provider's.
	Notice struct {
		ID, Verdict string
		Settled     bool // a payment or refund was settled in the transaction that recorded it
	}
	// Stream is what was in the event stream between two losses of Redis.
	Stream struct {
		Since time.Time // the loss before it; what is older may have been published before that, and again after it
		IDs   []string  // of events, oldest first
	}
	// Charge is an entry of the provider's list.
	Charge struct {
		ID        string `json:"id"`
		Reference string `json:"reference"` // the order of a charge, our refund of a refund
		Status    string `json:"status"`
		Amount    int64  `json:"amount"`
	}
)

// History is the journal, by key.
func History(attempts []journal.Attempt) map[KeyID][]journal.Attempt {
	keys := map[KeyID][]journal.Attempt{}
	for _, a := range attempts {
		id := KeyID{a.Account, a.Key}
		keys[id] = append(keys[id], a)
	}
	return keys
}

// All applies the rules that need only the journal and the books. Patience bounds the check of one key's history.
func All(attempts []journal.Attempt, b Books, patience time.Duration) []Violation {
	history := History(attempts)
	var all []Violation
	for _, found := range [][]Violation{
		histories(history, patience), answersKept(history, b), refusedHaveNoEffect(history, b), decided(history), noOrphans(b),
		charges(b), providerRefunds(b), ledger(b), wallets(b), stock(b), orders(b), notices(b), Unfinished(b), announced(b), events(b),
	} {
		all = append(all, found...)
	}
	return all
}
