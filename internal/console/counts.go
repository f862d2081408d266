package console

import (
	"sync"
	"time"
)

// countedSeconds is for how long events are counted by the second.
const countedSeconds = 60

// counts count events of some kinds. Safe for concurrent use.
type counts[K comparable] struct {
	mu      sync.Mutex
	total   map[K]int
	seconds map[K]map[int64]int
}

func newCounts[K comparable]() *counts[K] {
	return &counts[K]{total: map[K]int{}, seconds: map[K]map[int64]int{}}
}

func (c *counts[K]) add(kind K, n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now().Unix()
	if c.seconds[kind] == nil {
		c.seconds[kind] = map[int64]int{}
	}
	c.total[kind] += n
	c.seconds[kind][now] += n
	for second := range c.seconds[kind] {
		if second < now-countedSeconds {
			delete(c.seconds[kind], second)
		}
	}
}

// sum is what was counted in so many full seconds, which ended so many seconds ago.
func (c *counts[K]) sum(kind K, seconds, ago int64) (n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for end, second := time.Now().Unix()-ago, int64(1); second <= seconds; second++ {
		n += c.seconds[kind][end-second]
	}
	return n
}

// all is what was counted since the beginning.
func (c *counts[K]) all(kind K) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.total[kind]
}
