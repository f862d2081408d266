package verify

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/oncepay/oncepay/loadtest/books"

	"github.com/oncepay/oncepay/loadtest/faults/journal"
)

// ExecutionMark separates a client's key from what another system appends to it, so that each
// execution has a key of its own in PostgreSQL. Clients' keys don't contain it.
const ExecutionMark = "~"

// Score counts what became of the keys of a campaign, in the same way for every system. A key may
// count several times.
type Score struct {
	Keys                  int `json:"keys"`                    // that clients used
	Effects               int `json:"effects"`                 // orders, payments, refunds and top-ups that were committed
	DoubledKeys           int `json:"doubled_keys"`            // keys with more than one effect
	ExtraEffects          int `json:"extra_effects"`           // effects beyond the first one of their key, or of no key at all
	DoubleCharges         int `json:"double_charges"`          // orders that the provider charged more than once
	ChargesWithoutPayment int `json:"charges_without_payment"` // charges whose order has no payment
	LostAnswers           int `json:"lost_answers"`            // keys with a 2xx that PostgreSQL doesn't know, or that a later retry was refused
	RefusedYetDone        int `json:"refused_yet_done"`        // keys with a final 4xx and an effect
	TwoAnswers            int `json:"two_answers"`             // keys with two different 2xx to the same request
	OtherRequest          int `json:"other_request"`           // keys with a 2xx to two different requests
	OtherAccount          int `json:"other_account"`           // keys with a 2xx that tells of another account's resource
	Stuck                 int `json:"stuck"`                   // keys that were in progress for too long
}

// Count makes the score. A key that is said to be in progress for longer than stuckAfter is stuck.
func Count(attempts []journal.Attempt, b books.Books, stuckAfter time.Duration) Score {
	kept := kept{map[books.KeyID][]books.KeyRow{}, map[string]string{}}
	for _, row := range b.Keys {
		if row.Status != "completed" {
			continue
		}
		id := row.KeyID
		id.Key, _, _ = strings.Cut(id.Key, ExecutionMark)
		kept.of[id] = append(kept.of[id], row)
		if row.Resource != "" { // products have no ID
			kept.owner[row.Resource] = row.Account
		}
	}
	var s Score
	for id, attempts := range History(attempts) {
		s.addKey(id, attempts, kept, stuckAfter)
	}
	s.addEffects(b, kept)
	s.addCharges(b)
	return s
}

// kept is what was completed under the clients' keys.
type kept struct {
	of    map[books.KeyID][]books.KeyRow
	owner map[string]string // the account of a resource
}

func (s *Score) addKey(id books.KeyID, attempts []journal.Attempt, kept kept, stuckAfter time.Duration) {
	var lost, refused, foreign bool
	bodies, requests := map[string]bool{}, map[string]bool{}
	for _, a := range attempts {
		switch a.Outcome() {
		case journal.Succeeded:
			requests[a.Fingerprint] = true
			bodies[a.Fingerprint+a.Body] = true
			owner := kept.owner[a.Resource]
			foreign = foreign || (owner != "" && owner != id.Account)
			gave := func(row books.KeyRow) bool { return row.Body == a.Body && row.ResponseStatus == a.Status }
			lost = lost || (owner == "" && !slices.ContainsFunc(kept.of[id], gave)) || refusedLater(attempts, a)
		case journal.Refused:
			refused = true
		}
	}
	s.Keys++
	s.LostAnswers += one(lost)
	s.RefusedYetDone += one(refused && len(kept.of[id]) > 0)
	s.TwoAnswers += one(len(bodies) > len(requests))
	s.OtherRequest += one(len(requests) > 1)
	s.OtherAccount += one(foreign)
	s.Stuck += one(longestInProgress(attempts) > stuckAfter)
}

// refusedLater says whether a request that had succeeded was refused when it was sent again.
func refusedLater(attempts []journal.Attempt, succeeded journal.Attempt) bool {
	return slices.ContainsFunc(attempts, func(a journal.Attempt) bool {
		return a.Invoke > succeeded.Return && a.Fingerprint == succeeded.Fingerprint && a.Outcome() == journal.Refused
	})
}

// longestInProgress is for how long, at least, a key stayed in progress without an answer in
// between.
func longestInProgress(attempts []journal.Attempt) time.Duration {
	var since, longest time.Duration
	inProgress := false
	for _, a := range slices.SortedFunc(slices.Values(attempts), func(a, b journal.Attempt) int { return cmp.Compare(a.Return, b.Return) }) {
		switch o := a.Outcome(); {
		case o == journal.InProgress && !inProgress:
			since, inProgress = a.Return, true
		case o == journal.InProgress:
			longest = max(longest, a.Return-since)
		case o.Decided():
			inProgress = false
		}
	}
	return longest
}

func (s *Score) addEffects(b books.Books, kept kept) {
	effects := map[string]bool{}
	for _, o := range b.Orders {
		effects[o.ID] = true
	}
	for _, p := range b.Paid() {
		effects[p.ID] = true
	}
	for _, r := range b.Refunded() {
		effects[r.ID] = true
	}
	for _, t := range b.TopUps {
		effects[t.ID] = true
	}
	s.Effects = len(effects)
	s.ExtraEffects = s.Effects
	for _, rows := range kept.of {
		n := 0
		for _, row := range rows {
			n += one(effects[row.Resource] && row.Operation != books.UpdateOrder) // that one makes nothing
		}
		s.ExtraEffects -= one(n > 0)
		s.DoubledKeys += one(n > 1)
	}
}

func (s *Score) addCharges(b books.Books) {
	paid, charged := map[string]bool{}, map[string]int{}
	for _, p := range b.Paid() {
		paid[p.Order] = true
	}
	for _, c := range b.Charges {
		if c.Status == "succeeded" {
			charged[c.Reference]++
			s.ChargesWithoutPayment += one(!paid[c.Reference])
		}
	}
	for _, n := range charged {
		s.DoubleCharges += one(n > 1)
	}
}

func one(is bool) int {
	if is {
		return 1
	}
	return 0
}
