package stack

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
)

// KeyLogs prints what the replicas have logged about one idempotency key, in the order in which it
// happened.
func (s *Stack) KeyLogs(ctx context.Context, key string) error {
	var text bytes.Buffer
	if err := s.Logs(ctx, &text, Replicas, false); err != nil {
		return err
	}
	lines := linesOf(key, text.Bytes())
	if len(lines) == 0 {
		return fmt.Errorf("the replicas have logged nothing about the key %q", key)
	}
	for _, line := range lines {
		s.printf("%s\n", line)
	}
	return nil
}

// logLine is what a person wants of a line that a replica has logged.
type logLine struct {
	Time      time.Time `json:"time"`
	Replica   string    `json:"pod_id"`
	Level     string    `json:"level"`
	Message   string    `json:"msg"`
	Event     string    `json:"event"`
	RequestID string    `json:"request_id"`
	Key       string    `json:"key"`
	Result    string    `json:"result"`
	Endpoint  string    `json:"endpoint"`
	Method    string    `json:"method"`
	Path      string    `json:"path"`
	Status    int       `json:"status"`
	Millis    float64   `json:"duration_ms"`
	Client    string    `json:"client_ip"`
	Code      string    `json:"code"`
	Error     string    `json:"error"`
	Cause     string    `json:"cause"`
}

// String is one line of text: when, where, which request, and what.
func (l logLine) String() string {
	head := fmt.Sprintf("%s  %s  %.8s  ", l.Time.Format("15:04:05.000"), l.Replica, l.RequestID)
	trouble := strings.Join(strings.Fields(l.Code+" "+l.Error+" "+l.Cause), " ")
	switch l.Event {
	case "idempotency_check":
		return strings.TrimSpace(fmt.Sprintf("%skey      %-12s %s (%.1f ms) %s", head, l.Result, l.Endpoint, l.Millis, trouble))
	case "http_request":
		return fmt.Sprintf("%sanswer   %-12d %s %s (%.1f ms) to %s", head, l.Status, l.Method, l.Path, l.Millis, l.Client)
	}
	return strings.TrimSpace(fmt.Sprintf("%s%-8s %s %s", head, strings.ToLower(l.Level), l.Message, trouble))
}

// linesOf picks the lines of all copies of requests with a key out of what the replicas have
// logged: nginx may pass a request on to another replica, with its ID. The line that names the key
// is neither the first nor the last of its copy.
func linesOf(key string, text []byte) (found []logLine) {
	type requestCopy struct{ replica, requestID string }
	copies := map[requestCopy][]logLine{}
	end := func(of requestCopy) {
		if slices.ContainsFunc(copies[of], func(l logLine) bool { return l.Key == key }) {
			found = append(found, copies[of]...)
		}
		delete(copies, of)
	}
	for raw := range bytes.Lines(text) {
		var line logLine
		begin := max(0, bytes.IndexByte(raw, '{'))                             // Docker puts the service's name in front
		if json.Unmarshal(raw[begin:], &line) != nil || line.RequestID == "" { // what is no JSON has no key
			continue
		}
		of := requestCopy{line.Replica, line.RequestID}
		copies[of] = append(copies[of], line)
		if line.Event == "http_request" { // its last line; another request may have the same ID
			end(of)
		}
	}
	for of := range copies { // these still run
		end(of)
	}
	slices.SortStableFunc(found, func(a, b logLine) int { return a.Time.Compare(b.Time) })
	return found
}
