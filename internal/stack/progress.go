package stack

import (
	"fmt"
	"path/filepath"
	"strings"
	"time"
)

// slowStep is when a step that isn't done yet gets a line to say so: a first build takes a minute.
const slowStep = 5 * time.Second

// minNameWidth lets columns look the same wherever names are short.
const minNameWidth = 9

// step is a line of progress that is printed when it is done: name, address, state, seconds.
type step struct {
	s     *Stack
	name  string
	where string
	begun time.Time
	slow  *time.Timer
}

func (s *Stack) step(name, where string) step {
	t := step{s: s, name: name, where: where, begun: time.Now()}
	t.slow = time.AfterFunc(slowStep, func() { s.printf("  %-*s %-17s …\n", s.nameWidth(), name, where) })
	return t
}

func (t step) done(state string) {
	t.slow.Stop()
	t.s.printf("  %-*s %-17s %-28s %5.1f s\n", t.s.nameWidth(), t.name, t.where, state, time.Since(t.begun).Seconds())
}

// nameWidth is how much room the longest of the services' names takes.
func (s *Stack) nameWidth() int {
	width := 0
	for _, name := range s.services() {
		width = max(width, len(name))
	}
	return max(width, minNameWidth)
}

// printf shows something to the user; if the output is closed, the work goes on. One call is one
// write: the lines of parallel steps don't mix.
func (s *Stack) printf(format string, args ...any) { _, _ = fmt.Fprintf(s.Out, format, args...) }

// failed prints the line of a step that didn't work; the error itself comes later.
func (t step) failed(err error) error {
	if interrupted(err) {
		t.done("interrupted")
	} else {
		t.done("FAILED")
	}
	return fmt.Errorf("%s: %w", t.name, err)
}

// summary is what `up` prints at its end.
func (s *Stack) summary(took time.Duration) string {
	url := s.URL()
	command := "go run ./cmd/stack"
	if s.Dir != filepath.Join(s.root, ".stack") {
		command += " --dir " + s.Dir
	}
	return strings.NewReplacer("URL", url, "PSP", s.addr(PSP), "STACK", command).Replace(fmt.Sprintf(`
Ready in %.1f s: URL (replicas %s and %s, provider PSP, PostgreSQL %s, Redis %s)

Paste these:
  curl -s URL/v1/products -H 'Authorization: Bearer sk_test_demo'
  curl -si URL/v1/customers -H 'Authorization: Bearer sk_test_demo' -H 'Content-Type: application/json' \
    -H 'Idempotency-Key: try-1' -d '{"name":"Ada","email":"ada@example.com"}'      # again: X-Idempotent-Replay: true
  curl -s 'http://PSP/v1/charges'                                                  # what was really charged
  STACK kill api-1      # everything goes on; then: start api-1
  STACK down
`, took.Seconds(), s.addr(API1), s.addr(API2), s.addr(Postgres), s.addr(Redis)))
}
