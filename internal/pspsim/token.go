package pspsim

import (
	"regexp"
	"strconv"
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

// tokens are those that the provider knows, except tok_slow_<N>s.
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

// slowToken takes at most 60 seconds: a minute outlasts every timeout of a caller.
var slowToken = regexp.MustCompile(`^tok_slow_([1-9]|[1-5][0-9]|60)s$`)

// parseToken reports false for a token that the provider does not know.
func parseToken(token string) (behaviour, bool) {
	if b, known := tokens[token]; known {
		return b, true
	}
	match := slowToken.FindStringSubmatch(token)
	if match == nil {
		return behaviour{}, false
	}
	seconds, err := strconv.Atoi(match[1])
	return behaviour{delay: time.Duration(seconds) * time.Second}, err == nil
}
