package postgres

import (
	"context"
	"sync"
	"time"

	"github.com/google/uuid"
)

const (
	// turnsAtATime is how many transactions of one replica change a product at a time. PostgreSQL
	// hands a row lock from one transaction to the next at a cost that grows with the number of
	// those that wait: pgbench places 2,800 orders of one product a second with 2 clients, 2,200
	// with 8 and 1,500 with 32. One at a time would leave PostgreSQL idle between two of them.
	turnsAtATime = 4

	// turnPatience is how long a transaction waits for its turn, in all. It is shorter than
	// idleInTransactionTimeout. Then it goes on without a turn: the lock of the row is what orders
	// the changes, and if one who has a turn is stuck, that is no reason to fail.
	turnPatience = 250 * time.Millisecond
)

// turns keeps transactions of this process out of PostgreSQL while others change the same product.
// It is safe for concurrent use.
type turns struct {
	mu sync.Mutex
	of map[product]*turn // of products that are wanted now
}

// product names a row of products.
type product struct {
	account uuid.UUID
	sku     string
}

// turn is that of one product.
type turn struct {
	holders chan struct{} // has an element for each transaction whose turn it is
	wanted  int           // by how many transactions, also of those whose turn it is
}

func newTurns() *turns { return &turns{of: map[product]*turn{}} }

// take waits for the turn at all products, which must be in lock order, and returns how to end it.
func (t *turns) take(ctx context.Context, products []product) (leave func()) {
	ctx, cancel := context.WithTimeout(ctx, turnPatience)
	defer cancel()
	var taken []product
	for _, p := range products {
		if t.enter(ctx, p) {
			taken = append(taken, p)
		}
	}
	return func() {
		for _, p := range taken {
			<-t.want(p, 0).holders
			t.want(p, -1)
		}
	}
}

// enter reports whether the turn came before the context ended.
func (t *turns) enter(ctx context.Context, p product) bool {
	turn := t.want(p, 1)
	select {
	case turn.holders <- struct{}{}:
		return true
	default:
	}
	select {
	case turn.holders <- struct{}{}:
		return true
	case <-ctx.Done():
		t.want(p, -1)
		return false
	}
}

// want counts who wants a product, and returns its turn.
func (t *turns) want(p product, more int) *turn {
	t.mu.Lock()
	defer t.mu.Unlock()
	wanted := t.of[p]
	if wanted == nil {
		wanted = &turn{holders: make(chan struct{}, turnsAtATime)}
		t.of[p] = wanted
	}
	if wanted.wanted += more; wanted.wanted == 0 {
		delete(t.of, p)
	}
	return wanted
}
