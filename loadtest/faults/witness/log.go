package witness

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
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
		for log := first; ctx.Err() == nil; log, err = dial(ctx, addr) {
			if err == nil {
				w.readAll(ctx, log)
				w.forget()
			}
			time.Sleep(pause)
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

// command is a line of MONITOR (https://redis.io/docs/latest/commands/monitor/): what Redis did,
// and when, by its own clock.
type command struct {
	at     time.Duration // since 1970
	script bool          // a script gave it
	args   []string      // the name first, in lower case
}

// parse reads a line such as
//
//	+1339518083.107412 [0 127.0.0.1:60866] "set" "key" "value"
//
// and returns false for others.
func parse(line string) (command, bool) {
	stamp, rest, found := strings.Cut(strings.TrimPrefix(line, "+"), " [")
	source, rest, closed := strings.Cut(rest, "] ")
	at, err := time.ParseDuration(stamp + "s")
	if !found || !closed || err != nil {
		return command{}, false
	}
	c := command{at: at, script: strings.HasSuffix(source, " lua")}
	for rest != "" {
		quoted, err := strconv.QuotedPrefix(rest)
		if err != nil {
			return command{}, false
		}
		arg, _ := strconv.Unquote(quoted) // which is a quoted string
		c.args = append(c.args, arg)
		rest = strings.TrimPrefix(rest[len(quoted):], " ")
	}
	if len(c.args) == 0 {
		return command{}, false
	}
	c.args[0] = strings.ToLower(c.args[0])
	return c, true
}

// has returns the place of an option's name, or -1.
func (c command) has(name string) int {
	return slices.IndexFunc(c.args, func(arg string) bool { return strings.EqualFold(arg, name) })
}

// lifetime is the PX or EX of a SET; a record without either does not expire.
func (c command) lifetime() time.Duration {
	for name, unit := range map[string]time.Duration{"px": time.Millisecond, "ex": time.Second} {
		if i := c.has(name); i >= 0 && i+1 < len(c.args) {
			if n, err := strconv.ParseInt(c.args[i+1], 10, 64); err == nil {
				return time.Duration(n) * unit
			}
		}
	}
	return forever
}
