// Package witness follows Redis's own log of commands (MONITOR). It finds attempts that changed a
// record that they did not own, and attempts that lost their lease while they lived. The database
// shows neither: the authority corrects what the accelerator gets wrong.
package witness

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	// prefix begins the keys of records.
	prefix = "idempotency:"
	// slack is how far the log's clock may be from the clock that Redis expires by: within it, it
	// is open whether a record had expired.
	slack = 500 * time.Millisecond
	// stall is a silence after which the clocks may be further apart: Redis reads its clock once
	// for all commands that wait, and the log reads it for each (redis/src/server.c,
	// updateCachedTime and replicationFeedMonitors). beat is the time between two commands of
	// pulse.
	stall, beat = slack * 4 / 5, stall / 5
	// blindFor is longer than an attempt may take: what was acquired unseen has ended by then.
	blindFor = 20 * time.Second
	// forever is longer than any campaign.
	forever = time.Duration(math.MaxInt64 / 4)
	// pause is how long a Redis that is back may go unwatched.
	pause = 20 * time.Millisecond
	// maxLine is longer than any record.
	maxLine = 1 << 20
)

// Event is something that happened to a record. Times are since the campaign began.
type Event struct {
	Since, At time.Duration // a lease began at Since
	Record    string        // the Redis key
	Detail    string
}

// Events are what a witness has seen.
type Events struct {
	Foreign  []Event // changes of records by attempts that did not own them
	Releases []Event // records that their owners removed: the attempt had no answer that is kept
	// Losses are leases that ended although their owners lived: they came back later, and had not
	// extended the lease in all that time.
	Losses []Event
}

// Witness has seen nothing while it is zero. It is safe for concurrent use.
type Witness struct {
	mu       sync.Mutex
	found    Events
	began    time.Duration     // as every other time here: since 1970
	records  map[string]record // by Redis key, as far as the log tells
	leases   map[string]Event  // by owner, from the acquisition to the owner's next write; At is the end
	script   string            // the owner in whose name a script runs: its commands come right after it
	last     time.Duration     // the newest command
	gap      bool              // commands may have been missed before the next one
	offUntil time.Duration     // until then Redis's clock may be behind the log's
	blind    time.Duration     // until then there may be records that were never seen
}

type record struct {
	owner   string
	done    bool
	until   time.Duration // it expires
	unknown bool          // it is open whose it is, or a fault made it bytes of no owner
}

// Follow watches the Redis at addr until ctx ends, also over restarts, after which it takes Redis
// to be empty. It returns when the log arrives.
func Follow(ctx context.Context, addr string, began time.Time) (*Witness, error) {
	w := newWitness()
	w.began = time.Duration(began.UnixNano())
	lines, err := monitor(ctx, addr)
	if err != nil {
		return nil, err
	}
	go pulse(ctx, addr)
	go func() {
		for ; ctx.Err() == nil; lines, err = monitor(ctx, addr) {
			for err == nil && lines.Scan() {
				w.see(parse(lines.Text()))
			}
			w.forget()
			time.Sleep(pause)
		}
	}()
	return w, nil
}

func newWitness() *Witness { return &Witness{records: map[string]record{}, leases: map[string]Event{}} }

// monitor opens a connection on which Redis logs its commands, until ctx ends.
func monitor(ctx context.Context, addr string) (*bufio.Scanner, error) {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	context.AfterFunc(ctx, func() { _ = conn.Close() })
	lines := bufio.NewScanner(conn)
	lines.Buffer(nil, maxLine)
	if _, err = fmt.Fprint(conn, "MONITOR\r\n"); err == nil && (!lines.Scan() || lines.Text() != "+OK") {
		err = fmt.Errorf("ask Redis for its log: %q", lines.Text())
	}
	if err != nil {
		_ = conn.Close()
	}
	return lines, err
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

// command is a line of MONITOR (https://redis.io/docs/latest/commands/monitor/): what Redis did,
// and when, by its own clock.
type command struct {
	at     time.Duration // since 1970
	script bool          // a script gave it
	args   []string      // the name first, in lower case; none: it was no command
}

// parse reads a line such as
//
//	+1339518083.107412 [0 127.0.0.1:60866] "set" "key" "value"
func parse(line string) (c command) {
	stamp, rest, _ := strings.Cut(strings.TrimPrefix(line, "+"), " [")
	source, rest, _ := strings.Cut(rest, "] ")
	at, err := time.ParseDuration(stamp + "s")
	for rest != "" && err == nil {
		var quoted string
		if quoted, err = strconv.QuotedPrefix(rest); err == nil {
			arg, _ := strconv.Unquote(quoted) // which is a quoted string
			c.args = append(c.args, arg)
			rest = strings.TrimPrefix(rest[len(quoted):], " ")
		}
	}
	if len(c.args) == 0 || err != nil {
		return command{}
	}
	c.at, c.script, c.args[0] = at, strings.HasSuffix(source, " lua"), strings.ToLower(c.args[0])
	return c
}

// Found returns what was seen so far.
func (w *Witness) Found() Events {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.found // to which the log only appends
}

// forget is for a Redis that ended. The first commands of the next one are not seen.
func (w *Witness) forget() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.gap = true
}

// see takes one command into account, in the order in which Redis executed them.
func (w *Witness) see(c command) {
	if len(c.args) == 0 {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.gap || (w.last > 0 && c.at > w.last+stall) {
		w.clear()
		w.gap, w.offUntil, w.blind = false, c.at+slack, c.at+blindFor
	}
	w.last = c.at
	if !c.script {
		w.script = ""
	}
	name, args := c.args[0], c.args[1:]
	switch {
	case name == "flushall", name == "flushdb":
		w.clear()
	case strings.HasPrefix(name, "eval"): // sha, number of keys, key, owner, …
		if len(args) > 3 && strings.HasPrefix(args[2], prefix) {
			w.script = args[3]
			w.comesBack(c.at, w.script)
		}
	case len(args) == 0, !strings.HasPrefix(args[0], prefix):
	case name == "del":
		w.mustOwn(c, w.script, "removes")
		delete(w.records, args[0])
		w.found.Releases = append(w.found.Releases, Event{At: c.at - w.began, Record: args[0]})
	case name == "set" && len(args) > 1:
		w.sets(c, args[1], strings.Fields(strings.ToLower(strings.Join(args[2:], " "))))
	}
}

func (w *Witness) clear() {
	clear(w.records)
	clear(w.leases)
}

// sets acquires a record by SET NX, which succeeds unless there is one, is a fault's SET XX, or
// writes a record that must be the writer's own.
func (w *Witness) sets(c command, value string, options []string) {
	key := c.args[1]
	is, known := w.records[key]
	owner, done := read(value)
	next := record{owner: owner, done: done, until: c.at + lifetime(options)}
	switch {
	case slices.Contains(options, "nx") && !c.script:
		if known && !is.unknown && c.at <= is.until-slack {
			return // it fails
		}
		if next.unknown = known && c.at <= is.until+slack || !known && c.at < w.blind; !next.unknown {
			w.leases[owner] = Event{Since: c.at, At: next.until, Record: key}
		}
	case slices.Contains(options, "xx") && !c.script: // it keeps the record's time
		if !known {
			return
		}
		next = record{unknown: true, until: is.until}
	default:
		owner = cmp.Or(w.script, owner)
		w.mustOwn(c, owner, "writes")
		next.owner, next.unknown = owner, c.at < w.offUntil
	}
	w.records[key] = next
}

// mustOwn notes a command by an attempt that is not the owner.
func (w *Witness) mustOwn(c command, owner, does string) {
	delete(w.leases, owner)
	is, known := w.records[c.args[1]]
	wrong := ""
	switch {
	case !known && c.at >= w.blind:
		wrong = "that does not exist"
	case !known, is.unknown:
	case c.at > is.until+slack:
		wrong = "that has expired"
	case is.owner != owner:
		wrong = "of " + is.owner
	case is.done:
		wrong = "that it had finished"
	}
	if wrong != "" {
		detail := fmt.Sprintf("%s %s a record %s", owner, does, wrong)
		w.found.Foreign = append(w.found.Foreign, Event{At: c.at - w.began, Record: c.args[1], Detail: detail})
	}
}

// comesBack notes an owner that uses its record after the lease has ended.
func (w *Witness) comesBack(at time.Duration, owner string) {
	if lease, held := w.leases[owner]; held && at > lease.At+slack {
		delete(w.leases, owner)
		lost := Event{Since: lease.Since - w.began, At: at - w.began, Record: lease.Record}
		w.found.Losses = append(w.found.Losses, lost)
	}
}

// lifetime is the PX or EX of a SET; a record without either does not expire.
func lifetime(options []string) time.Duration {
	for name, unit := range map[string]time.Duration{"px": time.Millisecond, "ex": time.Second} {
		if i := slices.Index(options, name); i >= 0 && i+1 < len(options) {
			n, _ := strconv.ParseInt(options[i+1], 10, 64) // Redis took it
			return time.Duration(n) * unit
		}
	}
	return forever
}

// read returns what the witness needs of a record, which is a line of JSON and a body.
func read(value string) (owner string, done bool) {
	line, _, _ := strings.Cut(value, "\n")
	var metadata struct{ Owner, Status string }
	_ = json.Unmarshal([]byte(line), &metadata) // others have no owner
	return metadata.Owner, metadata.Status != "InProgress"
}
