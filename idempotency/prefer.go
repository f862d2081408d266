package idempotency

import (
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"
)

const (
	headerPrefer            = "Prefer"
	headerPreferenceApplied = "Preference-Applied"
)

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
