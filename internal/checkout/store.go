package checkout

import (
	"context"
	"time"

	"github.com/google/uuid"
)

// Store keeps the shop. Each method is one transaction.
//
// A method that takes a [Call] MUST do all of this in that one transaction: claim the call's key,
// make the change, write its ledger entries and events, and keep the rendered answer under the key.
// A key that is already taken MUST lead to the kept answer with Replayed set, to [ErrKeyReused],
// [ErrKeyInProgress] or [ExpiredKey], and to no change. A final [Error] MUST be kept under the key
// like any answer, with nothing else written. A retryable one that is a refusal MUST leave the key
// to later attempts and to no others: an older one gets [ErrNewerAttemptRefused]. A call without a
// claim just makes the change.
//
// Driver errors are returned as [Unavailable]. After one of those the transaction may have been
// committed; a retry under the same key finds out.
type Store interface {
	ProviderEventStore

	AccountByKeyHash(ctx context.Context, hash [32]byte) (Account, error) // ErrUnauthorized

	// Key returns what is known of an idempotency key, or [ErrKeyNotFound]. A refused key, and one
	// whose time is up, is not known.
	Key(ctx context.Context, account uuid.UUID, key string) (Key, error)

	Product(ctx context.Context, account uuid.UUID, sku string) (Product, error)
	Products(ctx context.Context, account uuid.UUID, page ProductPage) ([]Product, error)
	PutProduct(ctx context.Context, call Call, wanted ProductWrite, render Render[Product]) (Answer, error)
	UpdateProduct(ctx context.Context, call Call, sku string, change ProductChange, render Render[Product]) (Answer, error)

	Customer(ctx context.Context, account, id uuid.UUID) (Customer, error)
	Wallet(ctx context.Context, account, customer uuid.UUID) (Wallet, error)
	CreateCustomer(ctx context.Context, call Call, wanted NewCustomer, render Render[Customer]) (Answer, error)
	UpdateCustomer(ctx context.Context, call Call, id uuid.UUID, change CustomerChange, render Render[Customer]) (Answer, error)
	TopUp(ctx context.Context, call Call, wanted NewTopUp, render Render[TopUp]) (Answer, error)

	Order(ctx context.Context, account, id uuid.UUID) (Order, error)
	Orders(ctx context.Context, account uuid.UUID, page OrderPage) ([]Order, error)
	PlaceOrder(ctx context.Context, call Call, wanted NewOrder, render Render[Order]) (Answer, error)
	UpdateOrder(ctx context.Context, call Call, id uuid.UUID, change OrderChange, render Render[Order]) (Answer, error)

	Payment(ctx context.Context, account, id uuid.UUID) (Payment, error)
	PayFromWallet(ctx context.Context, call Call, wanted NewPayment, render Render[Payment]) (Answer, error)
	RefundToWallet(ctx context.Context, call Call, wanted NewRefund, render Render[Refund]) (Answer, error)

	// BeginCardPayment is phase one: it commits the key as in progress, the order as paying and the
	// payment as processing with attempt 1. A key that is in progress with the same fingerprint
	// leads to the next attempt of the payment it began; a settled one to its answer.
	BeginCardPayment(ctx context.Context, call Call, wanted NewPayment, render Render[Payment]) (Begun[Payment], error)
	// SettleCardPayment is phase three. It changes nothing unless the payment is still processing
	// under the same attempt; otherwise it returns the settled answer, or ErrKeyInProgress when a
	// newer attempt is running.
	SettleCardPayment(ctx context.Context, call Call, payment Payment, result GatewayResult, render Render[Payment]) (Answer, error)
	// PutOffPayment makes a payment due for a [Reconciler] after the wait, unless it is settled or
	// a newer attempt was taken.
	PutOffPayment(ctx context.Context, account uuid.UUID, payment Payment, wait time.Duration) error

	// BeginCardRefund, SettleCardRefund and PutOffRefund do the same for a refund.
	BeginCardRefund(ctx context.Context, call Call, wanted NewRefund, render Render[Refund]) (Begun[Refund], error)
	SettleCardRefund(ctx context.Context, call Call, refund Refund, result GatewayResult, render Render[Refund]) (Answer, error)
	PutOffRefund(ctx context.Context, account uuid.UUID, refund Refund, wait time.Duration) error
}

// Key is what the authority knows of an idempotency key.
type Key struct {
	Key         string
	State       KeyState
	Operation   string     // what the key was used for, as its [Claim] said
	Resource    *uuid.UUID // what was begun at the provider, in progress or not
	Answer      Answer     // empty while in progress; without header and body once expired
	CreatedAt   time.Time
	CompletedAt time.Time // zero while in progress
	ExpiresAt   time.Time // until when this is known; one in progress does not expire
}

// KeyState is a state of a key.
type KeyState string

// The states of a key.
const (
	KeyInProgress KeyState = "in_progress"
	KeyCompleted  KeyState = "completed" // its answer is a 2xx
	KeyFailed     KeyState = "failed"    // its answer is a final 4xx
	KeyExpired    KeyState = "expired"   // its answer is no longer kept
)

// Begun is what the first phase of an operation led to.
type Begun[T any] struct {
	Value  T       // what to go on with, at its current attempt
	Answer *Answer // not nil: the operation already has its answer
}

// ProductPage asks for products in the order of their SKU.
type ProductPage struct {
	After string // SKU; empty: from the start
	Limit int32
}

// OrderPage asks for orders, newest first.
type OrderPage struct {
	Before   *uuid.UUID // order; nil: from the newest
	Customer *uuid.UUID // nil: of every customer
	Limit    int32
}
