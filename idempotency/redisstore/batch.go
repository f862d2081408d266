package redisstore

import (
	"context"
	"slices"
	"sync"

	"github.com/redis/go-redis/v9"
)

const (
	// maxRoundTrips limits how many round trips are under way at a time. More of them make the
	// batches smaller, and fewer let one slow reply delay more commands.
	maxRoundTrips = 4
	// maxBatch limits how many commands a slow reply can delay.
	maxBatch = 128
)

// batcher sends the commands of concurrent callers together: under load, server and process
// pay for one write and one read per batch instead of per command. While fewer than
// maxRoundTrips are under way, a command is sent at once and alone: nothing waits without need.
//
// A batch ends within the client's timeouts, and each command has a reply of its own. If the
// connection fails, all commands of the batch do.
type batcher struct {
	client redis.UniversalClient

	mu       sync.Mutex
	underWay int
	waiting  []*queued
}

// queued is a command that waits for a round trip to end.
type queued struct {
	cmd   redis.Cmder
	batch []*queued // of the command that sends it, itself included
	turn  chan bool // true: send the batch; false: it was sent
}

// do sends a command and returns its error. If ctx ends before, the command may or may not
// be executed, and must not be read.
func (b *batcher) do(ctx context.Context, cmd redis.Cmder) error {
	p := b.start(cmd)
	if p == nil {
		defer b.finish()
		return b.client.Process(ctx, cmd)
	}
	select {
	case sends := <-p.turn:
		if sends {
			b.send(p)
		}
		return cmd.Err()
	case <-ctx.Done():
		b.abandon(p)
		return ctx.Err()
	}
}

// start returns nil if the caller may send its command at once. It must call finish then.
func (b *batcher) start(cmd redis.Cmder) *queued {
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, cluster := b.client.(*redis.ClusterClient); cluster {
		b.underWay++ // a batch for several nodes would wait for the slowest
		return nil
	}
	if b.underWay < maxRoundTrips {
		b.underWay++
		return nil
	}
	p := &queued{cmd: cmd, turn: make(chan bool, 1)}
	b.waiting = append(b.waiting, p)
	return p
}

// finish ends a round trip. If commands wait, the first of them sends all in the next one.
func (b *batcher) finish() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.waiting) == 0 {
		b.underWay--
		return
	}
	n := min(len(b.waiting), maxBatch)
	first := b.waiting[0]
	first.batch = slices.Clone(b.waiting[:n])
	b.waiting = slices.Delete(b.waiting, 0, n)
	first.turn <- true
}

// send sends a batch. It does not use the context of a caller, which would end it for the others.
func (b *batcher) send(first *queued) {
	ctx, cancel := context.WithTimeout(context.Background(), batchTimeout)
	defer cancel()
	defer b.finish()
	pipeline := b.client.Pipeline()
	for _, p := range first.batch {
		_ = pipeline.Process(ctx, p.cmd) // only adds it
	}
	_, _ = pipeline.Exec(ctx) // each command has its own error
	for _, p := range first.batch[1:] {
		p.turn <- false
	}
}

// abandon takes a command back. If it has to send a batch, it does so for the others.
func (b *batcher) abandon(p *queued) {
	b.mu.Lock()
	if i := slices.Index(b.waiting, p); i >= 0 {
		b.waiting = slices.Delete(b.waiting, i, i+1)
	}
	b.mu.Unlock()
	select {
	case sends := <-p.turn:
		if sends {
			go b.send(p)
		}
	default:
	}
}
