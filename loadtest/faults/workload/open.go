package workload

import (
	"cmp"
	"slices"
	"sync"

	"github.com/oncepay/oncepay/loadtest/faults/journal"
)

// open holds the requests whose end nobody knows yet. Those that are decided are forgotten: a campaign of hours makes millions. The
// zero value is empty; it is safe for concurrent use.
type open struct {
	mu   sync.Mutex
	keys map[keyID]*openKey
}

type keyID struct{ account, key string }

type openKey struct {
	requests map[string]Request // all that the key is used for, by their fingerprints
	left     bool               // the client went away for good
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

// told takes in what a request's client was told. The key's end is known when one of its requests was answered for good; that the
// key belongs to another request ends this one alone.
func (o *open) told(r Request, outcome journal.Outcome) {
	o.mu.Lock()
	defer o.mu.Unlock()
	id := keyID{r.Account, r.Key}
	switch key := o.keys[id]; {
	case key == nil:
	case outcome == journal.Succeeded, outcome == journal.Refused:
		delete(o.keys, id)
	case outcome == journal.Reused:
		if delete(key.requests, r.fingerprint()); len(key.requests) == 0 {
			delete(o.keys, id)
		}
	}
}

// list gives the open requests, without those of clients that went away unless everything is wanted.
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
