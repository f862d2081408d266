package programs

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"sync"
	"time"
)

// progress keeps what a command prints, and shows its last line now and then.
type progress struct {
	stop  chan struct{}
	ended sync.WaitGroup

	mu      sync.Mutex
	printed bytes.Buffer
}

func showProgress(user context.Context, out io.Writer, name string, every time.Duration) *progress {
	p := &progress{stop: make(chan struct{})}
	p.ended.Go(func() {
		begun, ticks := time.Now(), time.NewTicker(every)
		defer ticks.Stop()
		interrupted := user.Done()
		tell := func() {
			fmt.Fprintln(out, "  interrupted: what is being installed is installed to its end")
			interrupted = nil
		}
		for {
			select {
			case <-interrupted:
				tell()
			case <-ticks.C:
				fmt.Fprintf(out, "  %s … %2.0f s  %.90s\n", name, time.Since(begun).Seconds(), p.lastLine())
			case <-p.stop:
				select {
				case <-interrupted:
					tell()
				default:
				}
				return
			}
		}
	})
	return p
}

// Write is safe for concurrent use.
func (p *progress) Write(printed []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.printed.Write(printed)
}

func (p *progress) lastLine() []byte {
	p.mu.Lock()
	defer p.mu.Unlock()
	lines := bytes.TrimSpace(p.printed.Bytes())
	return bytes.Clone(lines[bytes.LastIndexByte(lines, '\n')+1:])
}

func (p *progress) end() {
	close(p.stop)
	p.ended.Wait()
}
