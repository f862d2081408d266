package stack

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/oncepay/oncepay/internal/localserver"
	"github.com/oncepay/oncepay/internal/wait"
)

// doorTimeout bounds the wait, after every service is ready, until a request gets through all of
// them: nginx may have marked a replica as failed for a second.
const doorTimeout = 15 * time.Second

// errNothingStarted marks a refusal: `up` has changed nothing.
var errNothingStarted = errors.New("nothing was started")

// portsTaken makes a refusal of an error about ports; nil stays nil.
func portsTaken(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%w\n%w (stop what is there, or take other ports with --port-offset 1000)", err, errNothingStarted)
}

// Up brings the whole stack up, or what is missing of it, and returns when it answers through
// nginx.
func (s *Stack) Up(ctx context.Context) error { return s.locked(ctx, s.bringUp) }

func (s *Stack) bringUp(ctx context.Context) error {
	begun := time.Now()
	isNew := s.driver == nil
	why, err := s.decide(ctx)
	if err != nil {
		return err
	}
	s.printf("oncepay on the %s driver (%s), in %s\n", s.state.Driver, why, s.Dir)
	if s.options.Direct && !s.Direct {
		s.printf("the compose driver connects its services through the fault proxy in any case\n")
	}
	_ = s.faults().HealAll() // of an earlier `up`; a proxy that doesn't run yet has none
	if s.IsReplicated() {
		_ = s.setReplication(ctx, true)
	}
	err = s.driver.up(ctx)
	if errors.Is(err, errNothingStarted) && isNew {
		return errors.Join(err, s.remove())
	}
	if err == nil {
		err = s.step("door", s.Addr(Nginx), func() (string, error) {
			return "GET /v1/products: 200", wait.For(ctx, doorTimeout, localserver.PollInterval, s.probeDoor)
		})
	}
	if interrupted(err) {
		return errors.New("interrupted; `stack up` goes on from here, `stack down` removes what is there")
	}
	if err != nil {
		return err
	}
	s.printSummary(time.Since(begun))
	return nil
}

// decide chooses driver, ports and environment, or keeps those of the stack that is up, and writes
// them down.
func (s *Stack) decide(ctx context.Context) (why string, err error) {
	name, why := s.state.Driver, "as before"
	if name != "" {
		err = s.checkAgainstWhatIsUp()
	} else {
		name, why, err = s.choose(ctx)
	}
	if err != nil {
		return "", err
	}
	o := &s.options
	if len(o.Programs) > 0 && name != Native {
		return "", fmt.Errorf("another program for the replicas needs the native driver, this is %s", name)
	}
	err = s.update(func(d *state) {
		d.Driver, d.Env, d.Programs = name, slices.Sorted(slices.Values(o.Env)), map[string]string{}
		maps.Copy(d.Programs, o.Programs)
		d.Direct = d.Direct || o.Direct && name == Native
		d.Console = d.Console || o.Console && name == Native
		if isReplicated(o.Postgres) {
			d.Postgres = o.Postgres
		}
		if isReplicated(o.Redis) {
			d.Redis = o.Redis
		}
	})
	s.driver = s.newDriver()
	return why, err
}

// isReplicated reports whether a kind of Redis or PostgreSQL is another than Single.
func isReplicated(kind string) bool { return kind != "" && kind != Single }

// checkAgainstWhatIsUp refuses options that the stack that is up could only have from its start.
func (s *Stack) checkAgainstWhatIsUp() error {
	o, known := &s.options, s.state
	differs := ""
	switch {
	case o.Driver != "" && o.Driver != Auto && o.Driver != known.Driver:
		differs = "is on the " + known.Driver + " driver"
	case o.PortOffset != 0 && o.PortOffset != known.Offset:
		differs = fmt.Sprintf("has port offset %d", known.Offset)
	case o.Redis != "" && o.Redis != cmp.Or(known.Redis, Single):
		differs = "has another kind of Redis"
	case o.Postgres != "" && o.Postgres != cmp.Or(known.Postgres, Single):
		differs = "has another kind of PostgreSQL"
	case o.Direct && !known.Direct:
		differs = "has the fault proxy"
	}
	if differs == "" {
		return nil
	}
	return fmt.Errorf("the stack in %s %s: take it down first", s.Dir, differs)
}

// choose returns the driver of a new stack, with the reason.
func (s *Stack) choose(ctx context.Context) (name, why string, err error) {
	o, only := &s.options, "" // what only the native driver can do
	switch {
	case isReplicated(o.Postgres):
		only = "--postgres standby"
	case isReplicated(o.Redis):
		only = "--redis sentinel"
	case o.Direct && o.Driver == Compose:
		only = "--direct"
	}
	switch {
	case only != "" && o.Driver == Compose:
		return "", "", fmt.Errorf("only the native driver can do %s: leave --driver out, or say --driver native", only)
	case only != "":
		return Native, "as " + only + " needs it", nil
	case o.Driver != "" && o.Driver != Auto:
		return o.Driver, "as asked for", nil
	}
	name, why = composeOrNative(ctx)
	return name, why, nil
}

// probeDoor asks for the products through nginx: the road from the front door to PostgreSQL.
func (s *Stack) probeDoor(ctx context.Context) error { return ProbeURL(ctx, s.URL()+"/v1/products") }

// dirFlag is the flag of `stack` for this stack, after a space; empty for the default one.
func (s *Stack) dirFlag() string {
	if s.Dir == filepath.Join(s.root, ".stack") {
		return ""
	}
	return " --dir " + s.Dir
}

// printSummary is the end of what `up` prints.
func (s *Stack) printSummary(took time.Duration) {
	watch := ""
	if url := s.ConsoleURL(); url != "" {
		watch = "Watch it, and break it by buttons: " + url + "\n"
	}
	text := strings.NewReplacer("URL", s.URL(), "PSP", s.Addr(PSP), "STACK", "go run ./cmd/stack"+s.dirFlag()).Replace(`
Ready in %.1f s: URL (replicas %s and %s, provider PSP, PostgreSQL %s, Redis %s)
%sThe API in a browser: URL/docs

Paste these:
  curl -s URL/v1/products -H 'Authorization: Bearer sk_test_demo'
  curl -si URL/v1/customers -H 'Authorization: Bearer sk_test_demo' -H 'Content-Type: application/json' \
    -H 'Idempotency-Key: try-1' -d '{"name":"Ada","email":"ada@example.com"}'      # again: X-Idempotent-Replay: true
  curl -s 'http://PSP/v1/charges'                                                  # what was really charged
  STACK kill api-1      # everything goes on; then: start api-1
  STACK down
`)
	s.printf(text, took.Seconds(), s.Addr(API1), s.Addr(API2), s.PostgresPrimary(), s.Addr(Redis), watch)
}

// ConsoleURL is the address of the console, or "" if the stack has none.
func (s *Stack) ConsoleURL() string {
	if !s.Console {
		return ""
	}
	return "http://" + s.Addr(Console)
}
