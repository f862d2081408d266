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
// happened. With follow it prints what they log from now on, until ctx ends.
func (s *Stack) KeyLogs(ctx context.Context, key string, follow bool) error {
	var found []logLine
	show := func(line logLine) { s.Printf("%s\n", line) }
	lines := &keyLog{key: key, found: func(line logLine) { found = append(found, line) }}
	if follow {
		lines.found = show
	}
	err := s.Logs(ctx, lines, Replicas, follow)
	if err != nil || follow {
		return err
	}
	if len(found) == 0 {
		return fmt.Errorf("the replicas have logged nothing about the key %q", key)
	}
	slices.SortStableFunc(found, func(a, b logLine) int { return a.Time.Compare(b.Time) })
	for _, line := range found {
		show(line)
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

// requestCopy names one copy of a request: nginx may pass a request on to another replica, with its
// ID.
type requestCopy struct{ replica, requestID string }

// keyLog picks the lines of all copies of requests with a key out of what is written to it. The
// line that names the key is neither the first nor the last of its copy, so the lines of the copies
// that still run are kept.
type keyLog struct {
	key     string
	found   func(logLine)
	rest    []byte // of a line that is not whole yet
	running map[requestCopy][]logLine
	ours    map[requestCopy]bool
}

func (k *keyLog) Write(text []byte) (int, error) {
	k.rest = append(k.rest, text...)
	for {
		line, rest, whole := bytes.Cut(k.rest, []byte("\n"))
		if !whole {
			return len(text), nil
		}
		k.rest = rest
		k.take(line)
	}
}

// take reads a line, which has the service's name in front of it with Docker. What is no JSON has
// no key.
func (k *keyLog) take(text []byte) {
	var line logLine
	begin := max(0, bytes.IndexByte(text, '{'))
	if json.Unmarshal(text[begin:], &line) != nil || line.RequestID == "" {
		return
	}
	of := requestCopy{line.Replica, line.RequestID}
	if k.running == nil {
		k.running, k.ours = map[requestCopy][]logLine{}, map[requestCopy]bool{}
	}
	k.running[of] = append(k.running[of], line)
	k.ours[of] = k.ours[of] || line.Key == k.key
	if k.ours[of] {
		for _, one := range k.running[of] {
			k.found(one)
		}
		delete(k.running, of)
	}
	if line.Event == "http_request" { // its last line
		delete(k.running, of)
		delete(k.ours, of)
	}
}
