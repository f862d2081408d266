package idempotency

import (
	"context"
	"log/slog"
)

const (
	defaultMaxResponse = 1 << 20 // bytes; what one record holds in the store
	defaultMaxWaiters  = 256     // each holds what its request holds
)

// keeper is what all calls with keys of one [Middleware] share.
type keeper struct {
	store       Store
	log         *slog.Logger
	traceParent func(context.Context) string
	maxResponse int
	background  background
	waitSlots   chan struct{}
}

// enter takes one of the slots for waiters, if there is one. leave returns it.
func (k *keeper) enter() bool {
	select {
	case k.waitSlots <- struct{}{}:
		return true
	default:
		return false
	}
}

func (k *keeper) leave() { <-k.waitSlots }
