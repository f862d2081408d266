package main

import (
	"maps"
	"slices"

	"github.com/oncepay/oncepay/loadtest/audit"
	"github.com/oncepay/oncepay/loadtest/books"
	"github.com/oncepay/oncepay/loadtest/report"
)

// promise is what some rules say together, in words for the page.
type promise struct {
	text  string
	rules []audit.Rule
}

// ofAnswers were checked as the answers arrived, ofBooks once all was read back.
var (
	ofAnswers = []promise{
		{"every request was answered, with the status that was due", []audit.Rule{audit.NoAnswer, audit.ServerError, audit.WrongStatus}},
		{"every replay is marked as one, and no first answer is", []audit.Rule{audit.NotReplayed, audit.WrongReplay}},
		{"every answer under a key has the same bytes", []audit.Rule{audit.BodiesDiffer}},
		{"every answer fits its request", []audit.Rule{audit.WrongAnswer}},
		{"no key was answered twice as new", []audit.Rule{audit.SecondEffect}},
	}
	ofBooks = []promise{
		{"every key got its order or payment", []audit.Rule{audit.Unacknowledged}},
		{"every acknowledged order is there once, as it was answered", []audit.Rule{audit.LostOrder, audit.WrongOrder}},
		{"every acknowledged payment is there, as it was answered", []audit.Rule{audit.LostPayment, audit.WrongPayment}},
		{"there is no order without a key", []audit.Rule{audit.SurplusOrder}},
		{"the provider charged once for each card payment, and was asked once", []audit.Rule{books.OneCharge, audit.AskedAgain}},
		{"orders match their payments", []audit.Rule{books.OrdersMatch}},
		{"wallets match the payments", []audit.Rule{books.WalletsMatch}},
		{"stock matches the orders and is never negative", []audit.Rule{books.StockMatches}},
	}
	ofEvents = promise{"every event was published and had its effect in time", []audit.Rule{audit.LateEvents}}
)

// promises are those that were checked, and every rule that is broken.
func (s summary) promises() (checked []report.Promise) {
	wanted := slices.Clone(ofAnswers)
	if s.Unread == "" {
		wanted = append(wanted, ofBooks...)
	}
	if s.Events != nil {
		wanted = append(wanted, ofEvents)
	}
	broken := map[audit.Rule]int{}
	for _, f := range s.Violations {
		broken[f.Rule]++
	}
	for _, p := range wanted {
		line := report.Promise{Text: p.text}
		for _, rule := range p.rules {
			line.Broken += broken[rule]
			delete(broken, rule)
		}
		checked = append(checked, line)
	}
	for _, rule := range slices.Sorted(maps.Keys(broken)) {
		checked = append(checked, report.Promise{Text: string(rule), Broken: broken[rule]})
	}
	return checked
}
