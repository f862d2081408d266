package witness

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	// dialTimeout and pause bound how long a Redis that is back goes unwatched.
	dialTimeout, pause = time.Second, 20 * time.Millisecond
	// beat is the time between two commands of pulse.
	beat = stall / 5
	// maxLine is longer than any record.
	maxLine = 1 << 20
)

// Follow watches the Redis at addr until ctx ends, also over restarts, after which it takes Redis
// to be empty. It returns when the log arrives.
func Follow(ctx context.Context, addr string) (*Witness, error) {
	first, err := dial(ctx, addr)
	if err != nil {
		return nil, err
	}
	w := newWitness()
	go pulse(ctx, addr)
	go func() {
		w.readAll(ctx, first)
		for ctx.Err() == nil {
			w.forget()
			time.Sleep(pause)
			if next, err := dial(ctx, addr); err == nil {
				w.readAll(ctx, next)
			}
		}
	}()
	return w, nil
}

// pulse sends commands all the time, so that a silent log means that Redis is stalled.
func pulse(ctx context.Context, addr string) {
	client := redis.NewClient(&redis.Options{Addr: addr, MaxRetries: -1, PoolSize: 1})
	defer func() { _ = client.Close() }()
	for ctx.Err() == nil {
		_ = client.Ping(ctx).Err() // its end is in the log, too
		time.Sleep(beat)
	}
}

// log is a connection on which Redis logs its commands.
type log struct {
	conn  net.Conn
	lines *bufio.Scanner
}

func dial(ctx context.Context, addr string) (*log, error) {
	conn, err := (&net.Dialer{Timeout: dialTimeout}).DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	l := &log{conn: conn, lines: bufio.NewScanner(conn)}
	l.lines.Buffer(nil, maxLine)
	_ = conn.SetDeadline(time.Now().Add(dialTimeout))
	if _, err = fmt.Fprint(conn, "MONITOR\r\n"); err == nil && (!l.lines.Scan() || l.lines.Text() != "+OK") {
		err = errors.Join(fmt.Errorf("ask Redis for its log: %q", l.lines.Text()), l.lines.Err())
	}
	if err != nil {
		_ = conn.Close()
		return nil, err
	}
	return l, conn.SetDeadline(time.Time{})
}

// readAll returns when the connection or ctx ends.
func (w *Witness) readAll(ctx context.Context, l *log) {
	defer context.AfterFunc(ctx, func() { _ = l.conn.Close() })()
	defer func() { _ = l.conn.Close() }()
	for l.lines.Scan() {
		if c, ok := parse(l.lines.Text()); ok {
			w.see(c)
		}
	}
}
