package idempotency

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Those who wait look soon, for handlers are quick and a store may not be able
// to notify, and then less and less often.
const (
	firstLook = 50 * time.Millisecond
	lastLook  = time.Second
)

const (
	headerPrefer            = "Prefer"
	headerPreferenceApplied = "Preference-Applied"
)

// wait waits for a record that is in the way, and gives what is there then: nil
// when the key is ours now, and the record in the way when the time is up, the
// client is gone or too many others wait.
//
// A store that can't answer in between is waited for, too: all that is known is
// that another attempt was running.
func (c *call) wait(met *Record) *Record {
	bound, leave := c.mayWait()
	if leave == nil {
		return met
	}
	defer leave()
	ctx, cancel := context.WithTimeout(c.r.Context(), bound)
	defer cancel()
	changed, stop := Watch(c.store, c.pending.Scope, c.pending.Key)
	defer stop()

	unsure := false
	for look := firstLook; awaitChange(ctx, changed, untilLook(look, met)); look = min(2*look, lastLook) {
		existing, err := c.ask()
		switch {
		case errors.Is(err, ErrBreakerOpen): // the store wasn't asked
		case err != nil:
			unsure = true
		case !c.inTheWay(existing):
			return existing
		default:
			met = existing
		}
	}
	if unsure { // the store may hold our record although its answer never came
		c.cleanup(c.r.Context(), c.release)
	}
	return met
}

// mayWait says for how long, and takes one of the places to wait in; leave is
// nil when there is nothing to wait for.
func (c *call) mayWait() (bound time.Duration, leave func()) {
	bound, preferred := c.policy.Wait, false
	if c.policy.MaxWait > 0 {
		if asked, ok := preferredWait(c.r.Header); ok {
			bound, preferred = min(asked, c.policy.MaxWait), true
		}
	}
	if bound > 0 {
		select {
		case c.waitSlots <- struct{}{}:
		default:
			return 0, nil
		}
		began := time.Now()
		leave = func() {
			c.check.Waited = time.Since(began)
			<-c.waitSlots
		}
	}
	if preferred {
		c.w.Header().Set(headerPreferenceApplied, "wait="+strconv.Itoa(wholeSeconds(bound)))
	}
	return bound, leave
}

// untilLook spreads those who wait, and has them look when the lease has just
// ended.
func untilLook(look time.Duration, met *Record) time.Duration {
	until := look/2 + rand.N(look/2)
	if left := time.Until(met.ExpiresAt) + firstLook; left > 0 { // our clock may be off
		until = min(until, left)
	}
	return until
}

// awaitChange waits until it is time to look again, and says whether ctx still
// goes on.
func awaitChange(ctx context.Context, changed <-chan struct{}, atMost time.Duration) bool {
	timer := time.NewTimer(atMost)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-changed:
	case <-timer.C:
	}
	return ctx.Err() == nil
}

// preferredWait reads Prefer: wait=<seconds>, which may stand among other
// preferences, with parameters, and count once (RFC 7240, section 2). What isn't
// a number of seconds is ignored, as preferences are that can't be honoured.
func preferredWait(h http.Header) (time.Duration, bool) {
	for _, line := range h.Values(headerPrefer) {
		for preference := range strings.SplitSeq(line, ",") {
			preference, _, _ = strings.Cut(preference, ";")
			name, value, _ := strings.Cut(preference, "=")
			if !strings.EqualFold(strings.TrimSpace(name), "wait") {
				continue
			}
			seconds, err := strconv.ParseUint(strings.Trim(value, " \t\""), 10, 31) // gives the most if it is more
			return time.Duration(seconds) * time.Second, err == nil || errors.Is(err, strconv.ErrRange)
		}
	}
	return 0, false
}
