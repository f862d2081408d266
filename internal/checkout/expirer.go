package checkout

import (
	"context"
	"time"

	"github.com/oncepay/oncepay/internal/background"
)

const (
	// expireInterval is short against the time that an order may be unpaid. At worst an order holds
	// its stock for that much longer.
	expireInterval = 5 * time.Second

	// expireBatch is how many orders, with their products, a transaction locks.
	expireBatch = 20
)

// ExpiryStore is what an [Expirer] needs of a store.
type ExpiryStore interface {
	// ExpireOrders makes at most limit unpaid orders expired whose time is up by the store's clock,
	// returns their stock and writes their events, all in one transaction. It MUST NOT touch or
	// wait for an order that is being paid or cancelled. It returns the number of orders.
	ExpireOrders(ctx context.Context, limit int) (int, error)
}

// Expirer expires orders that were not paid in time, and returns their stock. Every replica runs
// one; it is safe for concurrent use.
type Expirer struct {
	*background.Periodic
	store ExpiryStore
	batch int
}

// NewExpirer makes an expirer.
func NewExpirer(store ExpiryStore, schedule background.Schedule) *Expirer {
	schedule = schedule.Or(expireInterval, expireBatch)
	e := &Expirer{store: store, batch: schedule.Batch}
	e.Periodic = background.NewPeriodic("expirer", schedule, e.RunOnce)
	return e
}

// RunOnce expires a batch of orders and returns their number.
func (e *Expirer) RunOnce(ctx context.Context) (int, error) {
	return e.store.ExpireOrders(ctx, e.batch)
}
