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

// A waiter looks soon, because most handlers are quick and a store may not be able to wake it,
// and then less and less often.
const (
	firstLook = 50 * time.Millisecond
	lastLook  = time.Second
)

const (
	headerPrefer            = "Prefer"
	headerPreferenceApplied = "Preference-Applied"
)

// wait waits for the end of an attempt in progress. It returns what ask returned then: nil if
// the key is ours now. It returns the record in progress if the time is up, the client is gone
// or too many others wait.
//
// If the store cannot be reached meanwhile, it waits on: all that is known is that another
// attempt was running.
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

	for look := firstLook; awaitChange(ctx, changed, untilLook(look, met)); look = min(2*look, lastLook) {
		existing, err := c.ask()
		switch {
		case err != nil:
		case !isInProgress(existing):
			return existing
		default:
			met = existing
		}
	}
	c.tidyUp(c.release)
	return met
}

// mayWait returns for how long to wait, and takes one of the places for waiters; leave is nil
// if there is none, or no time to wait.
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

// untilLook is random, so that waiters do not look together, and ends soon after the lease.
func untilLook(look time.Duration, met *Record) time.Duration {
	until := look/2 + rand.N(look/2)
	if left := time.Until(met.ExpiresAt) + firstLook; left > 0 { // our clock may differ
		until = min(until, left)
	}
	return until
}

// awaitChange returns when it is time to look again. It reports whether ctx is still valid.
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

// preferredWait reads Prefer: wait=<seconds>. It may stand among other preferences and have
// parameters, and the first one counts (RFC 7240, section 2). A value that is not a number of
// seconds is ignored, like every preference that cannot be honoured.
func preferredWait(h http.Header) (time.Duration, bool) {
	for _, line := range h.Values(headerPrefer) {
		for preference := range strings.SplitSeq(line, ",") {
			preference, _, _ = strings.Cut(preference, ";")
			name, value, _ := strings.Cut(preference, "=")
			if !strings.EqualFold(strings.TrimSpace(name), "wait") {
				continue
			}
			seconds, err := strconv.ParseUint(strings.Trim(value, " \t\""), 10, 31) // the maximum, on ErrRange
			return time.Duration(seconds) * time.Second, err == nil || errors.Is(err, strconv.ErrRange)
		}
	}
	return 0, false
}
