package verify

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/oncepay/oncepay/loadtest/books"
	"github.com/oncepay/oncepay/loadtest/faults/journal"
)

// inTime is the time in which a write without a key acts, or never, if its client gets no answer:
// for as long as nginx waits for the answer, and a little for what PostgreSQL is executing.
const inTime = 17 * time.Second

// unpaidTime is shorter than an unpaid order holds its units.
const unpaidTime = 10 * time.Second

// thing is a product or a customer: the stock, or the number in the name, and how often it was
// changed.
type thing struct{ value, version int64 }

// after is the thing after a change or a read, and whether that is allowed.
func (t thing) after(c journal.Change) (thing, bool) {
	if c.Kind == journal.Get {
		return t, true
	}
	next := thing{c.Amount, t.version + 1}
	if c.Kind == journal.Add {
		next.value += t.value
	}
	exists := t.version > 0
	return next, next.value >= 0 && (c.IfMatch == 0 || c.IfMatch == t.version) && (exists || c.Kind == journal.Set)
}

// told says whether a thing is what an answer says it is.
func (t thing) told(c journal.Change) bool {
	return (c.Stock == nil || *c.Stock == t.value) && (c.Version == 0 || c.Version == t.version)
}

// things are products and customers as their clients may see them: each change acts once between
// its request and its answer, or never if it is refused. One without an answer may act or not.
var things = (&porcupine.NondeterministicModel{
	Init: func() []any { return []any{thing{}} },
	Step: func(s, input, output any) (may []any) {
		is, c, outcome := s.(thing), input.(journal.Change), output.(journal.Outcome)
		next, allowed := is.after(c)
		if allowed && (outcome == journal.Unknown || outcome == journal.Succeeded && next.told(c)) {
			may = append(may, next) // it acts
		}
		if outcome == journal.Unknown || outcome == journal.Refused && !allowed {
			may = append(may, is) // it does nothing
		}
		return may
	},
}).ToModel()

// changesActOnce finds products and customers whose changes have no order in which each acts once,
// in its time.
func changesActOnce(attempts []journal.Attempt, b books.Books, patience time.Duration) (found []books.Violation) {
	ends, expired := endsOf(b), map[string]bool{} // orders that have returned their stock without a request
	for _, o := range b.Orders {
		expired[o.ID] = o.Status == "expired"
	}
	changes := by(attempts, func(a journal.Attempt) string { // its ID stands for a key
		if a.Change == nil {
			return ""
		}
		return a.Change.Of
	})
	for id, attempts := range changes {
		operations := changesOf(attempts, expired, ends[id.Key])
		if verdict := porcupine.CheckOperationsTimeout(things, operations, patience); verdict != porcupine.Ok {
			found = append(found, books.Broken(ChangesActOnce, "porcupine: %s, %d changes and reads, in the end %d at version %d", verdict,
				len(operations), ends[id.Key].value, ends[id.Key].version).Of(id))
		}
	}
	return found
}

// endsOf are the products and customers in the end.
func endsOf(b books.Books) map[string]thing {
	ends := map[string]thing{}
	for _, p := range b.Products {
		ends[p.SKU] = thing{p.Stock, p.Version}
	}
	for id, name := range b.Customers {
		number, _ := strconv.ParseInt(name[strings.LastIndex(name, "-")+1:], 10, 64) // only campaigns' names have one
		ends[id] = thing{number, 1}
	}
	for _, e := range b.Events {
		if end := ends[e.Subject]; e.Type == books.CustomerUpdated {
			ends[e.Subject] = thing{end.value, end.version + 1}
		}
	}
	return ends
}

// changesOf are the changes of one thing, with the time in which each acted. A customer is there
// before its first change.
func changesOf(attempts []journal.Attempt, expired map[string]bool, end thing) []porcupine.Operation {
	var all []porcupine.Operation
	happened := func(c journal.Change, o journal.Outcome, from, to time.Duration) {
		all = append(all, porcupine.Operation{ClientId: len(all), Input: c, Output: o, Call: int64(from), Return: int64(to)})
	}
	var last time.Duration
	for _, a := range attempts {
		last = max(last, a.Return+inTime)
	}
	for _, a := range requests(attempts) {
		outcome := a.Outcome()
		switch {
		case outcome == journal.Succeeded || outcome == journal.Refused && decidesOnTheThing[a.Code]:
			happened(*a.Change, outcome, a.Invoke, a.Return)
		case outcome == journal.Unknown && a.Change.Kind != journal.Get:
			happened(*a.Change, outcome, a.Invoke, min(last, max(a.Return, a.Invoke+inTime)))
		}
		if outcome == journal.Succeeded && expired[a.Resource] {
			back := journal.Change{Kind: journal.Add, Amount: -a.Change.Amount}
			happened(back, journal.Succeeded, a.Invoke+unpaidTime, last)
		}
	}
	if attempts[0].Operation == journal.Rename {
		happened(journal.Change{Kind: journal.Set}, journal.Succeeded, -2, -1)
	}
	happened(journal.Change{Kind: journal.Get, Stock: &end.value, Version: end.version}, journal.Succeeded, last+1, last+2)
	return withoutImplied(all)
}

// withoutImplied leaves out each refusal in whose time another request for the same was refused
// throughout: where the other one fits, it fits, too. Without this, dozens of buyers who are
// refused at the same time have more orders than can be searched.
func withoutImplied(all []porcupine.Operation) (kept []porcupine.Operation) {
	slices.SortStableFunc(all, func(a, b porcupine.Operation) int { return cmp.Compare(a.Return-a.Call, b.Return-b.Call) })
	for _, o := range all {
		within := func(k porcupine.Operation) bool {
			return k.Output == journal.Refused && k.Input == o.Input && o.Call <= k.Call && k.Return <= o.Return
		}
		if o.Output != journal.Refused || !slices.ContainsFunc(kept, within) {
			kept = append(kept, o)
		}
	}
	return kept
}

// decidesOnTheThing are the refusals that depend on the thing's state alone.
var decidesOnTheThing = map[string]bool{"out_of_stock": true, "precondition_failed": true}

// requests are the attempts without a key, and one for each key: its first final answer, as if it
// had been sent with the first attempt. A key without one may act until the end.
func requests(attempts []journal.Attempt) []journal.Attempt {
	all := slices.DeleteFunc(slices.Clone(attempts), func(a journal.Attempt) bool { return a.Key != "" })
	for _, ofKey := range History(attempts) {
		one := ofKey[0]
		one.Error, one.Return = "never decided", math.MaxInt64
		for _, a := range ofKey {
			if a.Outcome().Kept() && a.Return < one.Return {
				one = a
			}
		}
		for _, a := range ofKey {
			one.Invoke = min(one.Invoke, a.Invoke)
		}
		all = append(all, one)
	}
	return all
}
