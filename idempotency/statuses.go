package idempotency

import (
	"cmp"
	"net/http"
)

// Fate is what becomes of a key after an answer.
type Fate int32

// The fates.
const (
	FateByDefault Fate = iota // the table of this package says it
	FateKept                  // a retry gets the answer again
	FateReleased              // a retry runs the handler, at once
	FateUnknown               // nobody knows the effect: the key stays in progress for [Policy].UnknownFor
)

// fateOf is the one rule: first the claim says it, then the policy, then the default. A record
// holds a status from 200 to 499 alone.
func (c *call) fateOf(code int, header http.Header) Fate {
	fate := c.claim.Fate()
	if fate == FateKept && !isKeepable(code) {
		fate = FateByDefault
	}
	if fate == FateByDefault && c.policy.Fate != nil {
		fate = c.fateOfPolicy(code, header)
	}
	switch {
	case fate == FateByDefault && isKeptByDefault(code):
		return FateKept
	case fate == FateByDefault, fate == FateKept && !isKeepable(code):
		return FateReleased
	}
	return fate
}

// fateOfPolicy returns what the policy says, and FateUnknown if its function panics. Without that,
// the key would stay in progress for as long as this process lives.
func (c *call) fateOfPolicy(code int, header http.Header) (fate Fate) {
	defer func() {
		if bug := recover(); bug != nil {
			c.holder.log.Error("idempotency: Policy.Fate panicked", "scope", c.claim.Scope, "key", c.claim.Key, "panic", bug)
			fate = FateUnknown
		}
	}()
	return c.policy.Fate(code, header)
}

func isKeepable(code int) bool { return code >= 200 && code <= 499 }

// isKeptByDefault: an answer that allows a retry is not kept, nor is one that routers and
// middleware give instead of a handler.
func isKeptByDefault(code int) bool {
	switch code {
	case http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests,
		http.StatusTemporaryRedirect, http.StatusPermanentRedirect, http.StatusUnauthorized, http.StatusForbidden,
		http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusUnsupportedMediaType:
		return false
	}
	return isKeepable(code)
}

// fateOfPart is the fate after a panic, which counts as a 500, or an answer that broke off: with
// the status of an answer that is kept, a handler or its upstream has probably had the effect.
func (x *exchange) fateOfPart() Fate {
	if x.fateOf(cmp.Or(x.out.code, http.StatusInternalServerError), x.out.header) == FateReleased {
		return FateReleased
	}
	return FateUnknown
}

// statusOf returns the status with which an answer is kept.
func statusOf(code int) Status {
	if code < 400 {
		return StatusCompleted
	}
	return StatusFailed
}
