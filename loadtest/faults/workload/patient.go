package workload

import (
	"context"
	"time"

	"github.com/oncepay/oncepay/loadtest/faults/journal"
)

const (
	// patience is longer than a client may ask the server to wait, and the work that follows.
	patience = 45 * time.Second
	// waiting is how many send a request and wait for one answer.
	waiting = 4
)

// waitPatiently has several places send one top-up through nginx, each of which asks for the
// longest wait. However long that takes, it is no failure of a replica.
func (a *action) waitPatiently(ctx context.Context, account string) {
	path := "/customers/" + a.customer(account) + "/top-ups"
	r := a.request(account, "top-up", path, map[string]any{"amount": dollars(1 + a.random.Int64N(500))})
	r.Via, r.Purpose, r.Prefer, r.Patience = nginx, journal.Patient, "wait=30", patience
	places := make([]Request, waiting)
	for i := range places {
		places[i] = r
	}
	a.together(ctx, places, func(int, journal.Attempt) {})
}
