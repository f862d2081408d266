// Package witness follows what Redis does, by its own log of commands, and tells who wrote a record that was not its own and who lost
// a lease while it lived. The database would not show either of them: the authority makes good what the accelerator gets wrong.
package witness

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"sync"
	"time"
)

const (
	// prefix begins the keys of records.
	prefix = "idempotency:"
	// slack is how far the log's time may be off the time that Redis expires by: within it, nobody can tell.
	slack = 500 * time.Millisecond
	// stall is a silence after which they may be further apart: Redis reads its clock once for all commands that it finds waiting, and
	// the log reads it for each (redis/src/server.c, updateCachedTime and replicationFeedMonitors), so a pause may lie in between.
	stall = slack * 4 / 5
	// blindFor is longer than an attempt may take: what was acquired while nobody watched has come to an end by then.
	blindFor = 20 * time.Second
	// forever is longer than any run.
	forever = time.Duration(math.MaxInt64 / 4)
)

// Trespass is a change of a record by somebody who did not hold it.
type Trespass struct {
	At     time.Time
	Record string // the Redis key
	Detail string
}

// Loss is a lease that ended although its holder lived, and came back later, without having said in all that time that it lives.
type Loss struct {
	From, To time.Time // when the lease began, and when its holder came back
	Record   string
}

// Release is a record that its holder removed: the attempt came to no answer that is kept.
type Release struct {
	At     time.Time
	Record string
}

// Witness is safe for concurrent use.
type Witness struct {
	mu        sync.Mutex
	records   map[string]*record
	trespass  []Trespass
	losses    []Loss
	releases  []Release
	lost      map[string]bool // owners whose loss is known
	scripting call            // the script that runs
	last      time.Duration   // the newest command
	gap       bool            // commands may have been missed before the next one
	murky     time.Duration   // until then Redis's clock may be behind the log's
	blind     time.Duration   // until then there may be records that were never seen
}

// record is what Redis holds under a key, as far as its log tells.
type record struct {
	owner     string
	done      bool
	since     time.Duration // the last write
	until     time.Duration // it expires
	beaten    bool          // it was extended
	uncertain bool          // whether an acquisition succeeded depends on a moment that nobody can tell
	before    *record       // expired in progress when this one was acquired
}

// call is a script's run: Redis logs it right before the commands that it gives.
type call struct{ record, owner string }

func newWitness() *Witness {
	return &Witness{records: map[string]*record{}, lost: map[string]bool{}}
}

// Found gives what was seen so far.
func (w *Witness) Found() ([]Trespass, []Loss) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]Trespass(nil), w.trespass...), append([]Loss(nil), w.losses...)
}

// Releases are those so far.
func (w *Witness) Releases() []Release {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]Release(nil), w.releases...)
}

// forget is for a Redis that ended. What the next one did first is not seen.
func (w *Witness) forget() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.gap = true
}

// see takes one command into account. They come in the order in which Redis did them.
func (w *Witness) see(c command) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.gap || (w.last > 0 && c.at > w.last+stall) {
		clear(w.records)
		w.gap, w.murky, w.blind = false, c.at+slack, c.at+blindFor
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
		if _, ifAbsent := c.option("nx"); ifAbsent && !c.script {
			w.acquires(c)
			return
		}
		w.writes(c, w.writer(c))
	case "del":
		if len(c.args) == 2 && strings.HasPrefix(c.args[1], prefix) {
			w.mustHold(c, w.writer(c), "removes")
			delete(w.records, c.args[1])
			w.releases = append(w.releases, Release{At: instant(c.at), Record: c.args[1]})
		}
	}
}

// writer is the owner in whose name a command is given.
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

func (w *Witness) writes(c command, owner string) {
	_, done := read(c.args[2])
	w.mustHold(c, owner, "writes")
	is := &record{owner: owner, done: done, since: c.at, until: c.at + c.lifetime(), uncertain: c.at < w.murky}
	if old := w.records[c.args[1]]; old != nil && !done {
		is.before, is.beaten = old.before, true
	}
	w.records[c.args[1]] = is
}

// mustHold notes a command by somebody else than the holder.
func (w *Witness) mustHold(c command, owner, does string) {
	is := w.records[c.args[1]]
	switch {
	case is == nil && c.at < w.blind:
	case is == nil:
		w.accuse(c, "%s %s what is not there", owner, does)
	case is.uncertain || (is.owner == owner && !is.done && c.at < is.until+slack):
	case c.at > is.until+slack:
		w.accuse(c, "%s %s what has expired", owner, does)
	case is.owner != owner:
		w.accuse(c, "%s %s what is %s's", owner, does, is.owner)
	case is.done:
		w.accuse(c, "%s %s what it had finished", owner, does)
	}
}

func (w *Witness) accuse(c command, format string, args ...any) {
	w.trespass = append(w.trespass, Trespass{At: instant(c.at), Record: c.args[1], Detail: fmt.Sprintf(format, args...)})
}

// comesBack notes a holder that speaks of its record after the lease has ended.
func (w *Witness) comesBack(at time.Duration, by call) {
	for is := w.records[by.record]; is != nil; is = is.before {
		if is.owner == by.owner && !is.done && !is.beaten && !is.uncertain && at > is.until+slack && !w.lost[by.owner] {
			w.lost[by.owner] = true
			w.losses = append(w.losses, Loss{From: instant(is.since), To: instant(at), Record: by.record})
		}
	}
}

// read gives what the witness needs of a record: a line of JSON and a body.
func read(value string) (owner string, done bool) {
	line, _, _ := strings.Cut(value, "\n")
	var metadata struct{ Owner, Status string }
	_ = json.Unmarshal([]byte(line), &metadata) // others are nobody's
	return metadata.Owner, metadata.Status != "InProgress"
}

func instant(sinceEpoch time.Duration) time.Time { return time.Unix(0, int64(sinceEpoch)) }
