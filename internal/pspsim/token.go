package pspsim

import (
	"fmt"
	"time"
)

// behaviour is what a card token makes the provider do.
type behaviour struct {
	declineCode string        // empty: the charge succeeds
	delay       time.Duration // from the charge to its answer
	hangUpFirst bool          // charge, but don't answer the key's first arrival
	silent      bool          // send no event of the charge
	revoked     bool          // be unknown after the key's first arrival
	failFirst   bool          // fail the key's first arrival before charging
}

// tokens are those that the provider knows. A refund has none, and behaves.
var tokens = map[string]behaviour{
	"tok_visa":               {},
	"tok_mastercard":         {},
	"tok_declined":           {declineCode: "card_declined"},
	"tok_insufficient_funds": {declineCode: "insufficient_funds"},
	"tok_charged_no_answer":  {hangUpFirst: true},
	"tok_charged_silent":     {hangUpFirst: true, silent: true},
	"tok_charged_revoked":    {hangUpFirst: true, silent: true, revoked: true},
	"tok_error_first":        {failFirst: true},
}

func init() {
	for delay := time.Second; delay <= time.Minute; delay += time.Second { // which outlasts every timeout of a caller
		tokens[fmt.Sprintf("tok_slow_%.0fs", delay.Seconds())] = behaviour{delay: delay}
	}
}
