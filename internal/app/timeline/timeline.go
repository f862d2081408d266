// Package timeline follows PostgreSQL through failovers and restores: records of a timeline before
// are not believed, and the events that a new timeline lacks are named.
package timeline

import (
	"log/slog"
	"sync/atomic"

	"github.com/oncepay/oncepay/internal/postgres"
)

// Timeline is that of the PostgreSQL that the replica has connected to last. It is safe for
// concurrent use.
type Timeline struct {
	log     *slog.Logger
	current atomic.Pointer[postgres.Timeline] // nil before the first connection
	begun   chan postgres.Beginning           // what is to be searched for losses
	lost    atomic.Int64                      // events that were found lost
}

// New returns one that has not been connected.
func New(log *slog.Logger) *Timeline {
	return &Timeline{log: log, begun: make(chan postgres.Beginning, 1)}
}

// Name is what records in Redis belong to.
func (t *Timeline) Name() string {
	if current := t.current.Load(); current != nil {
		return current.String()
	}
	return ""
}

// Number is for a metric; 0 before the first connection.
func (t *Timeline) Number() float64 {
	if current := t.current.Load(); current != nil {
		return float64(current.Number)
	}
	return 0
}

// Lost is how many events were found lost.
func (t *Timeline) Lost() float64 { return float64(t.lost.Load()) }

// Follow makes records of the timelines before count as absent, because PostgreSQL may have
// lost what they tell of. It decides on each key anew.
func (t *Timeline) Follow(now postgres.Timeline) {
	if before := t.current.Swap(&now); before != nil && *before != now {
		t.log.Error("PostgreSQL was failed over or restored: it decides on every key, records in Redis of before are not believed",
			"timeline", now.String(), "before", before.String())
	}
}

// Begin has the losses of a new timeline searched for.
func (t *Timeline) Begin(begun postgres.Beginning) {
	select {
	case t.begun <- begun:
	default: // one is enough: the search goes back to the older cursor
	}
}
