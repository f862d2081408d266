package console

import (
	"sync"
	"time"
)

// flowWindow, in seconds, is what a rate is the average of.
const flowWindow = 5

// clients are the node of the picture from which requests come.
const clients = "clients"

// connection is an arrow of the picture.
type connection struct{ from, to string }

// flows count what goes over each connection, by the second. Safe for concurrent use.
type flows struct {
	mu      sync.Mutex
	seconds map[connection]map[int64]int
}

func newFlows() *flows { return &flows{seconds: map[connection]map[int64]int{}} }

func (f *flows) add(from, to string) { f.addMany(from, to, 1) }

func (f *flows) addMany(from, to string, n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	c, now := connection{from, to}, time.Now().Unix()
	if f.seconds[c] == nil {
		f.seconds[c] = map[int64]int{}
	}
	f.seconds[c][now] += n
	for second := range f.seconds[c] {
		if second < now-flowWindow {
			delete(f.seconds[c], second)
		}
	}
}

// rate is per second, over the window that ends with the last full second.
func (f *flows) rate(from, to string) float64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	sum, now := 0, time.Now().Unix()
	for second, n := range f.seconds[connection{from, to}] {
		if second >= now-flowWindow && second < now {
			sum += n
		}
	}
	return float64(sum) / flowWindow
}
