// Package witness follows Redis's own log of commands. It finds attempts that changed a record that
// they did not own, and attempts that lost their lease while they lived. The database shows
// neither: the authority corrects what the accelerator gets wrong.
package witness

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"time"
)

const (
	// prefix begins the keys of records.
	prefix = "idempotency:"
	// slack is how far the log's clock may be from the clock that Redis expires by: within it, it
	// is open whether a record had expired.
	slack = 500 * time.Millisecond
	// stall is a silence after which the clocks may be further apart: Redis reads its clock once
	// for all commands that wait, and the log reads it for each (redis/src/server.c,
	// updateCachedTime and replicationFeedMonitors).
	stall = slack * 4 / 5
	// blindFor is longer than an attempt may take: what was acquired unseen has ended by then.
	blindFor = 20 * time.Second
	// forever is longer than any campaign.
	forever = time.Duration(math.MaxInt64 / 4)
)

// Event is something that happened to a record.
type Event struct {
	At     time.Time
	Record string // the Redis key
	Detail string
	Since  time.Time // of a loss: when the lease began
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
	mu        sync.Mutex
	records   map[string]*record
	found     Events
	lost      map[string]bool // owners whose loss is known
	scripting call            // the script that runs
	last      time.Duration   // the newest command
	gap       bool            // commands may have been missed before the next one
	offUntil  time.Duration   // until then Redis's clock may be behind the log's
	blind     time.Duration   // until then there may be records that were never seen
}

// record is what Redis holds under a key, as far as its log tells.
type record struct {
	owner     string
	done      bool
	since     time.Duration // the last write
	until     time.Duration // it expires
	beaten    bool          // it was extended
	uncertain bool          // it is open whether its acquisition succeeded
	damaged   bool          // a fault made it bytes of no owner, which any attempt may replace
	before    *record       // expired in progress when this one was acquired
}

// call is a run of a script: Redis logs it right before the script's commands.
type call struct{ record, owner string }

func newWitness() *Witness {
	return &Witness{records: map[string]*record{}, lost: map[string]bool{}}
}

// Found returns what was seen so far.
func (w *Witness) Found() Events {
	w.mu.Lock()
	defer w.mu.Unlock()
	return Events{slices.Clone(w.found.Foreign), slices.Clone(w.found.Releases), slices.Clone(w.found.Losses)}
}

// forget is for a Redis that ended. The first commands of the next one are not seen.
func (w *Witness) forget() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.gap = true
}

// see takes one command into account, in the order in which Redis executed them.
func (w *Witness) see(c command) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.gap || (w.last > 0 && c.at > w.last+stall) {
		clear(w.records)
		w.gap, w.offUntil, w.blind = false, c.at+slack, c.at+blindFor
	}
	w.last = c.at
	switch c.args[0] {
	case "flushall", "flushdb":
		clear(w.records)
	case "eval", "evalsha": // sha, number of keys, key, owner, …
		w.scripting = call{}
		if len(c.args) > 4 && strings.HasPrefix(c.args[3], prefix) {
			w.scripting = call{c.args[3], c.args[4]}
			w.comesBack(c.at, w.scripting)
		}
	case "set":
		if len(c.args) < 3 || !strings.HasPrefix(c.args[1], prefix) {
			return
		}
		switch {
		case c.has("nx") >= 0 && !c.script:
			w.acquires(c)
		case c.has("xx") >= 0 && !c.script:
			w.damages(c)
		default:
			w.writes(c, w.writer(c))
		}
	case "del":
		if len(c.args) == 2 && strings.HasPrefix(c.args[1], prefix) {
			w.mustOwn(c, w.writer(c), "removes")
			delete(w.records, c.args[1])
			w.found.Releases = append(w.found.Releases, Event{At: instant(c.at), Record: c.args[1]})
		}
	}
}

// writer is the owner in whose name a command runs.
func (w *Witness) writer(c command) string {
	if c.script {
		return w.scripting.owner
	}
	if len(c.args) > 2 {
		owner, _ := read(c.args[2])
		return owner
	}
	return ""
}

// acquires is SET NX: it succeeds unless there is a record.
func (w *Witness) acquires(c command) {
	is := w.records[c.args[1]]
	owner, done := read(c.args[2])
	mine := &record{owner: owner, done: done, since: c.at, until: c.at + c.lifetime()}
	switch {
	case is == nil:
		mine.uncertain = c.at < w.blind
		w.records[c.args[1]] = mine
	case c.at > is.until+slack:
		mine.before = is
		w.records[c.args[1]] = mine
	case is.uncertain || c.at > is.until-slack:
		mine.uncertain = true
		w.records[c.args[1]] = mine
	}
}

// damages is SET XX by a fault, which keeps the record's time.
func (w *Witness) damages(c command) {
	if is := w.records[c.args[1]]; is != nil {
		w.records[c.args[1]] = &record{damaged: true, done: is.done, since: is.since, until: is.until}
	}
}

func (w *Witness) writes(c command, owner string) {
	_, done := read(c.args[2])
	w.mustOwn(c, owner, "writes")
	is := &record{owner: owner, done: done, since: c.at, until: c.at + c.lifetime(), uncertain: c.at < w.offUntil}
	if old := w.records[c.args[1]]; old != nil && !done {
		is.before, is.beaten = old.before, true
	}
	w.records[c.args[1]] = is
}

// mustOwn notes a command by an attempt that is not the owner.
func (w *Witness) mustOwn(c command, owner, does string) {
	is := w.records[c.args[1]]
	switch {
	case is == nil && c.at < w.blind:
	case is == nil:
		w.note(c, "%s %s a record that does not exist", owner, does)
	case is.uncertain || is.damaged || (is.owner == owner && !is.done && c.at < is.until+slack):
	case c.at > is.until+slack:
		w.note(c, "%s %s a record that has expired", owner, does)
	case is.owner != owner:
		w.note(c, "%s %s a record of %s", owner, does, is.owner)
	case is.done:
		w.note(c, "%s %s a record that it had finished", owner, does)
	}
}

func (w *Witness) note(c command, format string, args ...any) {
	w.found.Foreign = append(w.found.Foreign, Event{At: instant(c.at), Record: c.args[1], Detail: fmt.Sprintf(format, args...)})
}

// comesBack notes an owner that uses its record after the lease has ended.
func (w *Witness) comesBack(at time.Duration, by call) {
	for is := w.records[by.record]; is != nil; is = is.before {
		if is.owner == by.owner && !is.done && !is.beaten && !is.uncertain && at > is.until+slack && !w.lost[by.owner] {
			w.lost[by.owner] = true
			w.found.Losses = append(w.found.Losses, Event{Since: instant(is.since), At: instant(at), Record: by.record})
		}
	}
}

// read returns what the witness needs of a record, which is a line of JSON and a body.
func read(value string) (owner string, done bool) {
	line, _, _ := strings.Cut(value, "\n")
	var metadata struct{ Owner, Status string }
	_ = json.Unmarshal([]byte(line), &metadata) // others have no owner
	return metadata.Owner, metadata.Status != "InProgress"
}

func instant(sinceEpoch time.Duration) time.Time { return time.Unix(0, int64(sinceEpoch)) }
