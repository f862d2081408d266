// Package watch is shared by the stores that can wake waiters: it hands out channels by name,
// and wakes them.
package watch

import "sync"

// Registry holds the watches of one store. The zero value is ready to use, and it is safe for
// concurrent use.
type Registry struct {
	mu      sync.Mutex
	hearing bool
	watches map[string]map[chan struct{}]bool
}

// Add begins a watch. Its channel receives when the name is woken, and when the store begins
// to hear of changes: at once if it does already. Several wakes that were not received are
// one. stop ends the watch and may be called again.
func (r *Registry) Add(name string) (changed <-chan struct{}, stop func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	c := make(chan struct{}, 1)
	if r.watches == nil {
		r.watches = map[string]map[chan struct{}]bool{}
	}
	if r.watches[name] == nil {
		r.watches[name] = map[chan struct{}]bool{}
	}
	r.watches[name][c] = true
	if r.hearing {
		c <- struct{}{}
	}
	return c, func() { r.remove(name, c) }
}

func (r *Registry) remove(name string, c chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.watches[name], c)
	if len(r.watches[name]) == 0 {
		delete(r.watches, name)
	}
}

// Wake wakes the watches of one name.
func (r *Registry) Wake(name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	wake(r.watches[name])
}

// Hear says that the store hears of changes from now on, for the first time or again. It wakes
// all watches, because they may have missed changes.
func (r *Registry) Hear() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.hearing = true
	for _, watches := range r.watches {
		wake(watches)
	}
}

// Len returns how many names are watched.
func (r *Registry) Len() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.watches)
}

func wake(watches map[chan struct{}]bool) {
	for c := range watches {
		select {
		case c <- struct{}{}:
		default: // it has not received the last one yet
		}
	}
}
