package workload

import (
	"cmp"
	"slices"
	"sync"

	"github.com/oncepay/oncepay/loadtest/faults/journal"
)

// open holds the requests that are not decided yet. Decided ones are dropped: a campaign of hours
// makes millions. The zero value is empty; it is safe for concurrent use.
type open struct {
	mu   sync.Mutex
	keys map[keyID]*openKey
}

type keyID struct{ account, key string }

type openKey struct {
	requests map[string]Request // all that the key is used for, by their fingerprints
	left     bool               // its client does not come back
}

func (o *open) add(r Request, left bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	id := keyID{r.Account, r.Key}
	if o.keys == nil {
		o.keys = map[keyID]*openKey{}
	}
	if o.keys[id] == nil {
		o.keys[id] = &openKey{requests: map[string]Request{}}
	}
	o.keys[id].requests[r.fingerprint()], o.keys[id].left = r, left
}

// answered takes in the outcome of a request. The key is decided when one of its requests has a
// final answer; that the key belongs to another request decides only this one.
func (o *open) answered(r Request, outcome journal.Outcome) {
	o.mu.Lock()
	defer o.mu.Unlock()
	id := keyID{r.Account, r.Key}
	switch key := o.keys[id]; {
	case key == nil:
	case outcome == journal.Succeeded, outcome == journal.Refused, outcome == journal.Expired:
		delete(o.keys, id)
	case outcome == journal.TurnedAway && key.left: // nothing was begun, and nobody asks for it any more
		delete(o.keys, id)
	case outcome == journal.Reused:
		if delete(key.requests, r.fingerprint()); len(key.requests) == 0 {
			delete(o.keys, id)
		}
	}
}

// list returns the open requests; those of clients that left only with everything.
func (o *open) list(everything bool) []Request {
	o.mu.Lock()
	defer o.mu.Unlock()
	var all []Request
	for _, key := range o.keys {
		if key.left && !everything {
			continue
		}
		for _, r := range key.requests {
			all = append(all, r)
		}
	}
	slices.SortFunc(all, func(a, b Request) int {
		return cmp.Or(cmp.Compare(a.Client, b.Client), cmp.Compare(a.Key, b.Key), cmp.Compare(a.Account, b.Account), slices.Compare(a.Body, b.Body))
	})
	return all
}
