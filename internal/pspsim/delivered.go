package pspsim

import (
	"bufio"
	"context"
	"os"
	"sync"
)

// deliveries are the events that were delivered, a file of their IDs. It is not synced: what
// a crash of the machine takes back is delivered again.
type deliveries struct {
	mu    sync.Mutex
	file  *os.File
	begun map[string]bool // delivered, or on its way
}

func openDeliveries(path string) (*deliveries, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	d := &deliveries{file: file, begun: map[string]bool{}}
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		d.begun[lines.Text()] = true // a torn line matches no ID
	}
	return d, lines.Err()
}

// begin reports whether the event is to be delivered now.
func (d *deliveries) begin(id string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.begun[id] {
		return false
	}
	d.begun[id] = true
	return true
}

func (d *deliveries) done(id string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	_, err := d.file.WriteString("\n" + id + "\n") // not at the end of a torn line
	return err
}

func (d *deliveries) close() error { return d.file.Close() }

// runs are functions in the background that end when they are stopped.
type runs struct {
	context context.Context
	cancel  context.CancelFunc

	mu      sync.Mutex // guards stopped, and that nothing starts after it
	stopped bool
	group   sync.WaitGroup
}

func newRuns() *runs {
	r := &runs{}
	r.context, r.cancel = context.WithCancel(context.Background())
	return r
}

func (r *runs) start(run func(context.Context)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.stopped {
		r.group.Go(func() { run(r.context) })
	}
}

func (r *runs) stop() {
	r.mu.Lock()
	r.stopped = true
	r.mu.Unlock()
	r.cancel()
	r.group.Wait()
}
