package checkout

import (
	"context"
	"time"
)

const (
	// expireInterval is short against the time that an order may be unpaid; for
	// that much longer, at worst, nobody else can buy what it holds.
	expireInterval = 5 * time.Second

	// expireBatch is how many orders, with their products, a transaction locks.
	expireBatch = 20
)

// ExpiryStore is what an [Expirer] needs of a store.
type ExpiryStore interface {
	// ExpireOrders makes at most limit unpaid orders expired whose time is up by
	// the store's clock, gives their stock back and writes their events, all in
	// one transaction. It MUST NOT touch or wait for an order that somebody is
	// paying or cancelling. It gives the number of orders.
	ExpireOrders(ctx context.Context, limit int) (int, error)
}

// Expirer ends orders that nobody paid in time and gives their stock back. Every
// replica runs one; it is safe for concurrent use.
type Expirer struct {
	periodic
	store ExpiryStore
}

// NewExpirer makes an expirer.
func NewExpirer(store ExpiryStore, schedule Schedule) *Expirer {
	e := &Expirer{store: store}
	e.periodic = periodic{name: "expirer", schedule: schedule.or(expireInterval, expireBatch), pass: e.RunOnce}
	return e
}

// RunOnce expires a batch of orders and gives their number.
func (e *Expirer) RunOnce(ctx context.Context) (int, error) {
	return e.store.ExpireOrders(ctx, e.schedule.Batch)
}
