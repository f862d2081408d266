package idempotency

import "net/http"

// statusOf returns the status with which an answer is kept, or none if it is not final. Answers
// that allow a retry are not final: 5xx, 408 Request Timeout, 425 Too Early and 429 Too Many
// Requests.
func statusOf(code int) Status {
	switch {
	case code == http.StatusRequestTimeout, code == http.StatusTooEarly, code == http.StatusTooManyRequests:
		return ""
	case code >= 200 && code < 400:
		return StatusCompleted
	case code >= 400 && code < 500:
		return StatusFailed
	}
	return ""
}
