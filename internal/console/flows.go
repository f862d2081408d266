package console

import (
	"maps"
	"sync"
	"time"
)

// flowWindow, in seconds, is what a rate is the average of.
const flowWindow = 5

// flows count what goes over each connection. Safe for concurrent use.
type flows struct {
	mu      sync.Mutex
	seconds map[int64]map[connection]int // since 1970
}

func (f *flows) add(c connection, n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := time.Now().Unix()
	if f.seconds[now] == nil {
		maps.DeleteFunc(f.seconds, func(second int64, _ map[connection]int) bool { return second < now-flowWindow })
		f.seconds[now] = map[connection]int{}
	}
	f.seconds[now][c] += n
}

// rate is how much went over a connection in each of the last full seconds.
func (f *flows) rate(c connection) float64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	sum, now := 0, time.Now().Unix()
	for ago := range int64(flowWindow) {
		sum += f.seconds[now-1-ago][c]
	}
	return float64(sum) / flowWindow
}
