package checkout

import (
	"context"
	"time"

	"github.com/google/uuid"
)

// Store keeps the shop. Each method is one transaction.
//
// A method that takes a [Call] MUST do all of this in that one transaction: claim the call's key,
// load what the operation's decision needs, write its [Changes], and keep under the key the answer
// that the call encodes.
// A key that is already taken MUST lead to the kept answer with Replayed set, to [ErrKeyReused],
// [ErrKeyInProgress] or [ExpiredKey], and to no change. A final [Error] MUST be kept under the key
// like any answer, with nothing else written. A retryable one that is a refusal MUST leave the key
// to later attempts and to no others: an older one gets [ErrNewerAttemptRefused]. A call without a
// claim just makes the change.
//
// Driver errors are returned as [Unavailable]. After one of those the transaction may have been
// committed; a retry under the same key finds out.
type Store interface {
	// Key returns what is known of an idempotency key, or [ErrKeyNotFound]. A refused key, and one
	// whose time is up, is not known.
	Key(ctx context.Context, account uuid.UUID, key string) (Key, error)

	Product(ctx context.Context, account uuid.UUID, sku string) (Product, error)
	Products(ctx context.Context, account uuid.UUID, page ProductPage) ([]Product, error)
	PutProduct(ctx context.Context, call Call, wanted ProductWrite) (Answer, error)
	UpdateProduct(ctx context.Context, call Call, sku string, change ProductChange) (Answer, error)

	Customer(ctx context.Context, account, id uuid.UUID) (Customer, error)
	Wallet(ctx context.Context, account, customer uuid.UUID) (Wallet, error)
	CreateCustomer(ctx context.Context, call Call, wanted NewCustomer) (Answer, error)
	UpdateCustomer(ctx context.Context, call Call, id uuid.UUID, change CustomerChange) (Answer, error)
	TopUp(ctx context.Context, call Call, wanted NewTopUp) (Answer, error)

	Order(ctx context.Context, account, id uuid.UUID) (Order, error)
	Orders(ctx context.Context, account uuid.UUID, page OrderPage) ([]Order, error)
	PlaceOrder(ctx context.Context, call Call, wanted NewOrder) (Answer, error)
	UpdateOrder(ctx context.Context, call Call, id uuid.UUID, change OrderChange) (Answer, error)

	Payment(ctx context.Context, account, id uuid.UUID) (Payment, error)
	Payments(ctx context.Context, account, order uuid.UUID, page Page) ([]Payment, error)
	Refunds(ctx context.Context, account, payment uuid.UUID, page Page) ([]Refund, error)
	PayFromWallet(ctx context.Context, call Call, wanted NewPayment) (Answer, error)
	RefundToWallet(ctx context.Context, call Call, wanted NewRefund) (Answer, error)

	CardPayments() Operations[NewPayment, Payment]
	CardRefunds() Operations[NewRefund, Refund]

	// RecordProviderEvent records an event that leads to nothing: VerdictUnknown, or
	// VerdictDuplicate if it is recorded already.
	RecordProviderEvent(ctx context.Context, e ProviderEvent) (Verdict, error)
}

// Operations keeps one kind of operation at the payment provider.
type Operations[W, T any] interface {
	// Begin is phase one: it commits the key as in progress, and with it what the request begins:
	// an operation that is processing, at attempt 1. A key that is in progress with the same
	// fingerprint leads to the next attempt of the operation it began; a settled one to its answer.
	Begin(ctx context.Context, call Call, wanted W) (Begun[T], error)
	// Settle is phase three. It changes nothing if a newer attempt was taken, or if the operation
	// is settled already: it then returns the settled answer, or ErrKeyInProgress when a newer
	// attempt is running.
	Settle(ctx context.Context, taken Taken[T], result GatewayResult) (Answer, error)
	// SettleByEvent settles an operation that is processing, of any account and at any attempt, and
	// MUST record the event by its ID in the same transaction. An event that is recorded already
	// MUST lead to VerdictDuplicate and to no change. Otherwise the verdict is that of
	// [Operation.Match] on the locked operation, or VerdictUnknown.
	SettleByEvent(ctx context.Context, id uuid.UUID, e ProviderEvent, encode Encode) (Verdict, error)
	// PutOff makes an operation due for a [Reconciler] after the wait, unless it is settled or a
	// newer attempt was taken. It keeps the provider's ID of the charge or refund, unless that is
	// empty.
	PutOff(ctx context.Context, taken Taken[T], providerID string, wait time.Duration) error
}

// Key is what the authority knows of an idempotency key.
type Key struct {
	Key         string
	State       KeyState
	Fingerprint [32]byte   // of the request, as its [Claim] said
	Operation   string     // what the key was used for, as its [Claim] said
	Resource    *uuid.UUID // what was begun at the provider, in progress or not
	Answer      Answer     // without content while in progress; once expired, as much as is known of it
	Path        string     // of what the command led to, as [Error].Resource; may be empty
	CreatedAt   time.Time
	CompletedAt time.Time // zero while in progress
	ExpiresAt   time.Time // until when this is known; one in progress does not expire
}

// KeyState is a state of a key.
type KeyState string

// The states of a key.
const (
	KeyInProgress KeyState = "in_progress"
	KeyCompleted  KeyState = "completed" // its command was done
	KeyFailed     KeyState = "failed"    // its command was refused for good
	KeyExpired    KeyState = "expired"   // its answer is no longer kept
)

// Begun is what the first phase of an operation led to.
type Begun[T any] struct {
	Taken[T]         // what to go on with, at its current attempt
	Answer   *Answer // not nil: the operation already has its answer
}

// Taken is an attempt at an operation, with the call that began it. Of the claim of one that was
// taken for a [Reconciler], key, fingerprint, operation and attempt are known: settling needs
// no more.
type Taken[T any] struct {
	Call  Call
	Value T
}

// ProductPage asks for products in the order of their SKU.
type ProductPage struct {
	After string // SKU; empty: from the start
	Limit int32
}

// Page asks for what belongs to an order or a payment, newest first.
type Page struct {
	Before *uuid.UUID // nil: from the newest
	Limit  int32
}

// OrderPage asks for orders, newest first.
type OrderPage struct {
	Before   *uuid.UUID // order; nil: from the newest
	Customer *uuid.UUID // nil: of every customer
	Limit    int32
}
