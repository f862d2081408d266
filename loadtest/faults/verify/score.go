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
func Count(attempts []journal.Attempt, b books.Books, stuckAfter time.Duration) (s Score) {
	kept := map[books.KeyID][]books.KeyRow{} // what was completed under the clients' keys
	owner := map[string]string{}             // the account of a resource
	for _, row := range b.Keys {
		if row.Status != "completed" {
			continue
		}
		id := row.KeyID
		id.Key, _, _ = strings.Cut(id.Key, ExecutionMark)
		kept[id] = append(kept[id], row)
		if row.Resource != "" { // products have no ID
			owner[row.Resource] = row.Account
		}
	}
	for id, attempts := range History(attempts) {
		s.addKey(id, attempts, kept[id], owner, stuckAfter)
	}
	s.addEffects(b, kept)
	return s
}

func (s *Score) addKey(
	id books.KeyID, attempts []journal.Attempt, kept []books.KeyRow, owner map[string]string, stuckAfter time.Duration,
) {
	var lost, refused, foreign bool
	bodies, requests := map[string]bool{}, map[string]bool{}
	for _, a := range attempts {
		refused = refused || a.Outcome() == journal.Refused
		if a.Outcome() != journal.Succeeded {
			continue
		}
		requests[a.Fingerprint], bodies[a.Fingerprint+a.Body] = true, true
		gave := func(row books.KeyRow) bool { return row.Body == a.Body && row.ResponseStatus == a.Status }
		later := func(o journal.Attempt) bool {
			return o.Invoke > a.Return && o.Fingerprint == a.Fingerprint && o.Outcome() == journal.Refused
		}
		of := owner[a.Resource]
		foreign = foreign || of != "" && of != id.Account
		lost = lost || of == "" && !slices.ContainsFunc(kept, gave) || slices.ContainsFunc(attempts, later)
	}
	s.Keys++
	s.LostAnswers += one(lost)
	s.RefusedYetDone += one(refused && len(kept) > 0)
	s.TwoAnswers += one(len(bodies) > len(requests))
	s.OtherRequest += one(len(requests) > 1)
	s.OtherAccount += one(foreign)
	s.Stuck += one(longestInProgress(attempts) > stuckAfter)
}

// longestInProgress is for how long, at least, a key stayed in progress without an answer in
// between.
func longestInProgress(attempts []journal.Attempt) (longest time.Duration) {
	since, inProgress := time.Duration(0), false
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

// addEffects compares what was committed and charged with the keys.
func (s *Score) addEffects(b books.Books, kept map[books.KeyID][]books.KeyRow) {
	effects, paid, charged := map[string]bool{}, map[string]bool{}, map[string]int{}
	for _, o := range b.Orders {
		effects[o.ID] = true
	}
	for _, p := range b.Paid() {
		effects[p.ID], paid[p.Order] = true, true
	}
	for _, r := range b.Refunded() {
		effects[r.ID] = true
	}
	for _, t := range b.TopUps {
		effects[t.ID] = true
	}
	s.Effects, s.ExtraEffects = len(effects), len(effects)
	for _, rows := range kept {
		n := 0
		for _, row := range rows {
			n += one(effects[row.Resource] && row.Operation != books.UpdateOrder) // that one makes nothing
		}
		s.ExtraEffects -= one(n > 0)
		s.DoubledKeys += one(n > 1)
	}
	for _, c := range b.Charges {
		if c.Status == "succeeded" {
			charged[c.Reference]++
			s.ChargesWithoutPayment += one(!paid[c.Reference])
			s.DoubleCharges += one(charged[c.Reference] == 2)
		}
	}
}

func one(is bool) int {
	if is {
		return 1
	}
	return 0
}
