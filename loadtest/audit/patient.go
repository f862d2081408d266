package audit

import (
	"net/http"
	"strconv"
	"time"
)

const (
	// patientTries bound the wait for a system that has just been driven to
	// its limits: about half a minute.
	patientTries = 30
	// patientWait is used when the answer has no Retry-After.
	patientWait = time.Second
)

// Patient reads again, after Retry-After, what was answered with 429 or 503:
// the audit is no part of the load. It does so for GET alone. Safe for
// concurrent use if next is.
func Patient(next http.RoundTripper) http.RoundTripper { return patient{next} }

type patient struct{ next http.RoundTripper }

func (p patient) RoundTrip(r *http.Request) (*http.Response, error) {
	for try := 1; ; try++ {
		answer, err := p.next.RoundTrip(r)
		if err != nil || r.Method != http.MethodGet || try == patientTries || !busy(answer.StatusCode) {
			return answer, err
		}
		wait := patientWait
		if seconds, err := strconv.Atoi(answer.Header.Get("Retry-After")); err == nil {
			wait = time.Duration(seconds) * time.Second
		}
		_ = answer.Body.Close()
		select {
		case <-time.After(wait):
		case <-r.Context().Done():
			return nil, r.Context().Err()
		}
	}
}

func busy(status int) bool {
	return status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable
}
