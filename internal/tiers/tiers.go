// Package tiers reads what each tier knows of an idempotency key: the record in Redis, the
// authority's row, the payment and its events in PostgreSQL, and the charges at the provider. It
// goes behind the API on purpose, and changes nothing. Only the local deployment uses it: `stack
// key` prints it, and the console shows it.
package tiers

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/oncepay/oncepay/internal/stack"
)

// readTimeout bounds the questions to one server: a tier that is broken on purpose must not hold up
// the others.
const readTimeout = time.Second

// View is what the tiers know of a key. A tier that knows nothing is nil or empty; one that could
// not be asked has an entry in Errors.
type View struct {
	Key       string            `json:"key"`
	Record    *Record           `json:"redis_record"`
	Authority *Authority        `json:"authority_row"`
	Payment   *Payment          `json:"payment,omitempty"`
	Charges   []Charge          `json:"provider_charges"`
	Events    []Event           `json:"events"`
	Errors    map[string]string `json:"errors,omitempty"` // by the tier's name
	Stream    *Stream           `json:"-"`                // of all events
}

// Record is what Redis has.
type Record struct {
	Account        string        `json:"account"`
	Status         string        `json:"status"` // InProgress, Completed or Failed
	Fingerprint    string        `json:"fingerprint"`
	Owner          string        `json:"owner"`
	ResponseStatus int           `json:"response_status,omitempty"`
	BodyHash       string        `json:"body_sha256,omitempty"`
	TimeLeft       time.Duration `json:"time_left_ns"` // in progress: of the lease
}

// Authority is the row of the key in PostgreSQL.
type Authority struct {
	Account        string     `json:"account"`
	Operation      string     `json:"operation"`
	Status         string     `json:"status"` // in_progress, completed, failed, refused or expired
	Fingerprint    string     `json:"fingerprint"`
	Resource       string     `json:"resource,omitempty"` // path of what the key led to
	ResponseStatus int        `json:"response_status,omitempty"`
	BodyHash       string     `json:"body_sha256,omitempty"`
	CreatedAt      time.Time  `json:"created_at"`
	CompletedAt    *time.Time `json:"completed_at,omitempty"`
	ExpiresAt      time.Time  `json:"expires_at"`
}

// Payment is what PostgreSQL has of the payment that the key led to.
type Payment struct {
	ID          string `json:"id"`
	Order       string `json:"order_id"`
	OrderStatus string `json:"order_status"`
	Status      string `json:"status"` // processing, succeeded or declined
	Attempt     int    `json:"attempt"`
	Amount      int64  `json:"amount"` // minor units
	Currency    string `json:"currency"`
	Charge      string `json:"charge_id,omitempty"`
}

// Charge is what the provider's audit list has of the payment. Its key ends with the payment's ID.
type Charge struct {
	ID       string `json:"id"`
	Key      string `json:"idempotency_key"`
	Status   string `json:"status"` // succeeded or declined
	Amount   int64  `json:"amount"` // minor units
	Currency string `json:"currency"`
	Attempts int    `json:"attempts"` // how often the provider's key arrived
}

// Event is a row of the outbox about what the key led to.
type Event struct {
	Position  int64    `json:"position"`
	Type      string   `json:"type"`
	Published bool     `json:"published"`
	ReadBy    []string `json:"read_by"` // the consumer groups that are done with it
}

// Stream is how far the events are.
type Stream struct {
	Last      int64 `json:"last"`      // position of the newest event in the outbox
	Published int64 `json:"published"` // position up to which they are in the stream
}

// Read asks all tiers of a deployment, one after the other where one answer is needed for the next
// question. It takes a few milliseconds, and no longer than some seconds when tiers are away.
func Read(ctx context.Context, at *stack.Topology, key string) View {
	view := View{Key: key, Errors: map[string]string{}}
	var asking sync.WaitGroup
	var redisErr, postgresErr error
	asking.Go(func() { view.Record, redisErr = readRecord(ctx, at.LikelyMaster(ctx), key) })
	asking.Go(func() { postgresErr = readPostgres(ctx, stack.PostgresURL(at.PostgresPrimary()), &view) })
	asking.Wait()
	view.note("Redis", redisErr)
	view.note("PostgreSQL", postgresErr)
	if view.Payment != nil {
		var err error
		view.Charges, err = Charges(ctx, at, view.Payment.Order)
		view.Charges = slices.DeleteFunc(view.Charges, func(c Charge) bool { return !strings.HasSuffix(c.Key, view.Payment.ID) })
		view.note("provider", err)
	}
	return view
}

func (v *View) note(tier string, err error) {
	switch {
	case err == nil:
	case errors.Is(err, context.DeadlineExceeded):
		v.Errors[tier] = "no answer within " + readTimeout.String()
	default:
		v.Errors[tier] = err.Error()
	}
}
