// Package books reads what the system and the payment provider hold, and checks that it is
// consistent. It looks behind the API on purpose, and changes nothing. Its checks are pure
// functions of what was read, shared by the audit of a load test and the verdict of a fault
// campaign.
package books

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"time"
)

// Rule is a promise, in words for a report.
type Rule string

// The rules of this package.
const (
	OneKeyPerEffect       Rule = "every effect belongs to exactly one key"
	OneCharge             Rule = "one provider charge for each card payment"
	OneRefund             Rule = "one provider refund for each card refund"
	DeclinesLimited       Rule = "an order takes at most 20 declined cards"
	LedgerBalances        Rule = "one balanced ledger transaction for each movement"
	WalletsMatch          Rule = "wallets match the movements"
	StockMatches          Rule = "stock matches the orders and is never negative"
	OrdersMatch           Rule = "orders match their payments and refunds"
	EachProviderEventOnce Rule = "each provider event is acted on once"
	NothingOpen           Rule = "no key in progress, no payment processing"
	OneEventEach          Rule = "one event for each change"
	EventsOnce            Rule = "each event has its effect once per group, in order"
	EachMailed            Rule = "each order and payment is mailed under its event's ID"
)

// Violation is a broken promise with the evidence. Key is the one whose history shows it, if any.
type Violation struct {
	Rule    Rule   `json:"rule"`
	Account string `json:"account,omitempty"`
	Key     string `json:"key,omitempty"`
	Detail  string `json:"detail"`
}

func (v Violation) String() string { return fmt.Sprintf("%s: %s %s", v.Rule, v.Detail, v.Key) }

// Broken makes a violation.
func Broken(rule Rule, format string, args ...any) Violation {
	return Violation{Rule: rule, Detail: fmt.Sprintf(format, args...)}
}

// Differ compares what there should be with what there is, by an ID. Where there is nothing, it may
// be missing. Owners are the keys whose histories show the violations, if any.
func Differ[V comparable](rule Rule, what string, want, is map[string]V, owners map[string]KeyID) (found []Violation) {
	ids := slices.AppendSeq(slices.Collect(maps.Keys(want)), maps.Keys(is))
	slices.Sort(ids)
	for _, id := range slices.Compact(ids) {
		if want[id] != is[id] {
			found = append(found, Broken(rule, "%s %s: want %+v, is %+v", what, id, want[id], is[id]).Of(owners[id]))
		}
	}
	return found
}

// KeyID is a key in its scope.
type KeyID struct{ Account, Key string }

// Of names the key whose history shows the violation.
func (v Violation) Of(k KeyID) Violation {
	v.Account, v.Key = k.Account, k.Key
	return v
}

// Books are what the system and the provider hold after the run.
type Books struct {
	Keys             []KeyRow
	Orders           []Order
	Payments         []Payment
	Refunds          []Refund
	TopUps           []TopUp
	Transactions     []Transaction
	Wallets          map[string]int64  // minor units by customer
	Customers        map[string]string // names
	Products         []Product
	Events           []Event
	Streams          []Stream        // the last one exists; the others were read before Redis lost them
	Confirmations    map[string]int  // by order
	WarehouseNotices map[string]int  // by order
	Mailable         []Confirmation  // that should be sent as mails
	Mails            map[string]int  // by the event in their Message-ID; nil: not read
	ProviderEvents   []ProviderEvent // that arrived
	Charges          []Charge        // in the provider's list
	ProviderRefunds  []Charge
	Pending          []string // Redis records in progress
}

// The rows, as far as the rules need them: books.sql has their fields. Amounts are in minor units.
type (
	// KeyRow is the authority's row of a key.
	KeyRow struct {
		KeyID
		Operation      string // place_order and so on, as the service calls it
		Status         string // in_progress, completed, failed or expired
		ResponseStatus int
		Body           string // SHA-256 of the kept body, in hexadecimal
		Resource       string // ID in the kept body
		Parent         string // of an expired key, instead: ID of what the refund or top-up is a part of
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
		Version        int64 // how often it was changed
		Restocked      bool  // its stock was set meanwhile: orders alone do not account for it
	}
	// Event is a row of the outbox.
	Event struct {
		ID, Subject, Type string
		Created           time.Time
		Published         bool
		About             string // ID of what changed
	}
	// ProviderEvent is an event that the provider sent.
	ProviderEvent struct {
		ID, Verdict string
		Order       string // of the payment or refund that it is about
		Row         string // the transaction that wrote its row last
		Settled     bool   // a payment or refund was settled at the time at which it was recorded
	}
	// Confirmation is a row of order_confirmations, by the ID of its event.
	Confirmation struct {
		Event   string
		Refused bool // for good, and the customer's address is such that a server may
	}
	// Stream is what was in the event stream between two losses of Redis.
	Stream struct {
		Since time.Time // the loss before it; older events may have been published before and after it
		IDs   []string  // of events, oldest first
	}
	// Charge is an entry of the provider's list.
	Charge struct {
		ID        string `json:"id"`
		Reference string `json:"reference"` // the order of a charge, our refund of a refund
		Status    string `json:"status"`
		Amount    int64  `json:"amount"`
		Attempts  int    `json:"attempts"` // how often the provider was asked
	}
)

// Expired is the status of a key whose answer is no longer kept.
const Expired = "expired"

// Other statuses and types of events that several rules look for.
const (
	succeeded        = "succeeded"
	processing       = "processing" // not settled: it has no event yet
	orderPlaced      = "order.placed"
	paymentSucceeded = "payment.succeeded"
)

// Succeeded says whether the key had its effect.
func (k KeyRow) Succeeded() bool {
	return k.Status == "completed" || k.Status == Expired && k.ResponseStatus < http.StatusMultipleChoices
}

// Check applies every check.
func Check(b Books) []Violation {
	return slices.Concat(charges(b), wallets(b), stock(b), orders(b), oneKeyPerEffect(b), providerRefunds(b), declines(b),
		ledger(b), providerEvents(b), Unfinished(b), announced(b), events(b), mailed(b))
}
