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

// maxDelay bounds tok_slow_<N>s: a minute outlasts every timeout of a caller.
const maxDelay = 60 * time.Second

var slowToken = regexp.MustCompile(`^tok_slow_([1-9][0-9]?)s$`)

// parseToken reports false for a token that the provider does not know.
func parseToken(token string) (behaviour, bool) {
	switch token {
	case "tok_visa", "tok_mastercard":
		return behaviour{}, true
	case "tok_declined":
		return behaviour{declineCode: "card_declined"}, true
	case "tok_insufficient_funds":
		return behaviour{declineCode: "insufficient_funds"}, true
	case "tok_charged_no_answer":
		return behaviour{hangUpFirst: true}, true
	case "tok_charged_silent":
		return behaviour{hangUpFirst: true, silent: true}, true
	case "tok_charged_revoked":
		return behaviour{hangUpFirst: true, silent: true, revoked: true}, true
	case "tok_error_first":
		return behaviour{failFirst: true}, true
	}
	match := slowToken.FindStringSubmatch(token)
	if match == nil {
		return behaviour{}, false
	}
	seconds, err := strconv.Atoi(match[1])
	delay := time.Duration(seconds) * time.Second
	return behaviour{delay: delay}, err == nil && delay <= maxDelay
}
