package stack

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/tidwall/gjson"
)

// Logs writes to out what the services have printed, and goes on until ctx ends when follow is set;
// no services means all.
func (s *Stack) Logs(ctx context.Context, out io.Writer, services []string, follow bool) error {
	if s.driver == nil {
		return s.noStack()
	}
	if len(services) == 0 {
		services = s.Services()
	}
	cmd := s.driver.logs(ctx, services, follow)
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Run(); err != nil && ctx.Err() == nil {
		return fmt.Errorf("show logs: %w", err)
	}
	return nil
}

// KeyLogs prints what the replicas have logged about the requests with one idempotency key, in the
// order in which it happened: when, where, which request, and what. nginx may pass a request on to
// the other replica, with its ID: that is another copy of it.
func (s *Stack) KeyLogs(ctx context.Context, key string) error {
	lines, err := s.replicaLines(ctx)
	if err != nil {
		return err
	}
	copyOf := func(line gjson.Result) string {
		return line.Get("pod_id").String() + " " + line.Get("request_id").String()
	}
	has := map[string]bool{}
	for _, line := range lines {
		has[copyOf(line)] = has[copyOf(line)] || line.Get("key").String() == key
	}
	lines = slices.DeleteFunc(lines, func(line gjson.Result) bool { return !has[copyOf(line)] })
	if len(lines) == 0 {
		return fmt.Errorf("the replicas have logged nothing about the key %q", key)
	}
	at := func(line gjson.Result) time.Time { return line.Get("time").Time() }
	slices.SortStableFunc(lines, func(a, b gjson.Result) int { return at(a).Compare(at(b)) })
	for _, line := range lines {
		fields := []string{at(line).Format("15:04:05.000"), fmt.Sprintf("%.8s", line.Get("request_id"))}
		for name := range strings.FieldsSeq("pod_id level msg result endpoint method path status code error cause") {
			if value := line.Get(name).String(); value != "" {
				fields = append(fields, value)
			}
		}
		s.printf("%s\n", strings.Join(fields, " "))
	}
	return nil
}

// ReadByReplicas is when a replica read the header of each request, by request ID, or some
// milliseconds later. It knows only requests that have ended.
func (s *Stack) ReadByReplicas(ctx context.Context) (map[string]time.Time, error) {
	lines, err := s.replicaLines(ctx)
	read := map[string]time.Time{}
	for _, line := range lines {
		if line.Get("event").String() == "http_request" {
			took := time.Duration(line.Get("duration_ms").Float() * float64(time.Millisecond))
			read[line.Get("request_id").String()] = line.Get("time").Time().Add(-took)
		}
	}
	return read, err
}

// replicaLines are those that the replicas have logged as JSON.
func (s *Stack) replicaLines(ctx context.Context) (lines []gjson.Result, err error) {
	var text strings.Builder
	err = s.Logs(ctx, &text, Replicas, false)
	for raw := range strings.Lines(text.String()) {
		_, fields, _ := strings.Cut(raw, "{") // Docker puts the service's name in front
		if line := gjson.Parse("{" + fields); gjson.Valid(line.Raw) {
			lines = append(lines, line)
		}
	}
	return lines, err
}
