package idempotency

import "log/slog"

const (
	defaultMaxResponse = 1 << 20 // bytes; what one record holds in the store
	defaultMaxWaiters  = 256     // each holds what its request holds
)

// keeper is what all calls with the keys of one [Middleware], or of one [Keys], share.
type keeper struct {
	store       Store
	log         *slog.Logger
	maxResponse int
	background  background
	waitSlots   chan struct{}
}

// newKeeper returns one with the defaults, whose background has to be initialized.
func newKeeper(store Store) *keeper {
	return &keeper{
		store: store, log: slog.Default(), maxResponse: defaultMaxResponse,
		waitSlots: make(chan struct{}, defaultMaxWaiters),
	}
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
