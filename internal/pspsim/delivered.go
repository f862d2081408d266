package pspsim

import (
	"bufio"
	"os"
	"sync"
)

// deliveries are the events that were delivered, a file of their IDs. It is not synced: what
// a crash of the machine takes back is delivered again.
type deliveries struct {
	mu       sync.Mutex
	file     *os.File
	begun    map[string]bool // delivered, or on its way
	underWay sync.WaitGroup
	closed   bool
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

// begin delivers an event in the background, and reports false if it was begun before.
func (d *deliveries) begin(id string, deliver func()) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.begun[id] || d.closed {
		return false
	}
	d.begun[id] = true
	d.underWay.Go(deliver)
	return true
}

func (d *deliveries) done(id string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	_, err := d.file.WriteString("\n" + id + "\n") // not at the end of a torn line
	return err
}

// close waits for the deliveries that are under way. None begins after it.
func (d *deliveries) close() error {
	d.mu.Lock()
	d.closed = true
	d.mu.Unlock()
	d.underWay.Wait()
	return d.file.Close()
}
