package stack

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// errNothingStarted marks a refusal: `up` has changed nothing.
var errNothingStarted = errors.New("nothing was started")

// Up brings the whole stack up, or what is missing of it, and returns when every service is ready.
func (s *Stack) Up(ctx context.Context) error {
	return s.locked(ctx, func() error { return s.bringUp(ctx) })
}

func (s *Stack) bringUp(ctx context.Context) error {
	begun, isNew := time.Now(), s.driver == nil
	why, err := s.decide(ctx)
	if err == nil {
		s.printf("oncepay on the %s driver (%s), in %s\n", s.state.Driver, why, s.Dir)
		_ = s.faults().ResetState() // of an earlier `up`; a proxy that doesn't run yet has none
		if s.IsReplicated() {
			_ = s.setReplication(ctx, true)
		}
		err = s.driver.up(ctx)
	}
	if isNew && (s.driver == nil || errors.Is(err, errNothingStarted)) {
		return errors.Join(err, s.remove())
	}
	if err != nil && ctx.Err() != nil { // Ctrl-C, or the like
		return errors.New("interrupted; `stack up` goes on from here, `stack down` removes what is there")
	}
	if err == nil {
		s.printSummary(time.Since(begun))
	}
	return err
}

// decide chooses what a new stack is, or keeps what is up, and writes it down.
func (s *Stack) decide(ctx context.Context) (why string, err error) {
	o, driver, why := &s.options, s.state.Driver, "as before"
	if err := o.check(s.state); err != nil {
		return "", err
	}
	if driver == "" {
		if driver, why, err = o.choose(ctx); err != nil {
			return "", err
		}
	}
	err = s.update(func(d *state) {
		d.Driver, d.Env, d.Programs = driver, slices.Sorted(slices.Values(o.Env)), maps.Collect(maps.All(o.Programs))
		d.Direct, d.Console = d.Direct || o.Direct, d.Console || o.Console && driver == Native
		d.Postgres, d.Redis = cmp.Or(o.Postgres, d.Postgres), cmp.Or(o.Redis, d.Redis)
		d.Pooler = cmp.Or(o.Pooler, d.Pooler)
	})
	s.driver = s.newDriver()
	return why, err
}

// choose returns the driver of a new stack, with the reason.
func (o *Options) choose(ctx context.Context) (driver, why string, err error) {
	wanted := Topology{Postgres: o.Postgres, Redis: o.Redis}
	switch onlyNative := wanted.HasStandby() || wanted.IsReplicated() || o.Pooler != "" || o.Direct || len(o.Programs) > 0; {
	case onlyNative && o.Driver == Compose:
		return "", "", errors.New("only the native driver has a Sentinel, a standby, a pooler, --direct and other programs")
	case onlyNative:
		return Native, "the only one with these options", nil
	case o.Driver != "" && o.Driver != Auto:
		return o.Driver, "as asked for", nil
	}
	if _, err := chooseImages(ctx); err != nil {
		return Native, err.Error(), nil
	}
	return Compose, "a Docker engine answers and the images are at hand", nil
}

// Oncepay is the service's program.
const Oncepay = "oncepay"

func (s *Stack) binDir() string { return filepath.Join(s.Dir, "bin") }

// Program is the path of one of our programs.
func (s *Stack) Program(name string) string { return filepath.Join(s.binDir(), name) }

// oncepayOf is the path of the program that a replica runs, or, by the name Oncepay, of commands.
func (s *Stack) oncepayOf(name string) string {
	return cmp.Or(s.state.Programs[name], s.Program(Oncepay))
}

// build compiles our programs, with these variables added to the environment. The stacks of a
// checkout share the linked programs: a copy takes milliseconds, and linking five seconds.
func (s *Stack) build(ctx context.Context, env ...string) error {
	s.printf("  building, which takes a minute or two the first time\n")
	return s.step("build", "", func() (string, error) {
		linked := filepath.Join(s.root, ".task", "stack", strings.Join(append(env, "tags="+s.options.BuildTags), ","))
		lock, err := s.lock(ctx, filepath.Dir(linked))
		if err != nil {
			return "", err
		}
		defer func() { _ = lock.Close() }()
		if os.Remove(linked+".whole") != nil { // a killed build may have left half a program, which go takes for up to date
			err = os.RemoveAll(linked)
		}
		// No -trimpath: what `go run ./cmd/stack` has compiled is not compiled again.
		// -buildvcs=false: a commit that changes nothing in a program must not restart it.
		cmd := exec.CommandContext(ctx, "go", "build", "-buildvcs=false", "-ldflags=-s -w", "-tags="+s.options.BuildTags,
			"-o", linked+"/", "./cmd/oncepay", "./cmd/pspsim", "./cmd/stack")
		cmd.Dir, cmd.Env = s.root, append(os.Environ(), env...)
		if err == nil {
			_, err = output(cmd)
		}
		if err == nil { // a program that runs cannot be overwritten
			err = errors.Join(os.WriteFile(linked+".whole", nil, 0o644), os.RemoveAll(s.binDir()), os.CopyFS(s.binDir(), os.DirFS(linked)))
		}
		return "oncepay, pspsim, stack", err
	})
}

// dirFlag is the flag of `stack` for this stack, after a space; empty for the default one.
func (s *Stack) dirFlag() string {
	if s.Dir == filepath.Join(s.root, ".stack") {
		return ""
	}
	return " --dir " + s.Dir
}

// printSummary is the end of what `up` prints.
func (s *Stack) printSummary(took time.Duration) {
	s.printf("\nReady in %.1f s: %s\n", took.Seconds(), s.URL())
	if s.Console {
		s.printf("Watch it, and break it by buttons: %s\n", s.ConsoleURL())
	}
	values := strings.NewReplacer("URL", s.URL(), "PSP", s.Addr(PSP), "STACK", "go run ./cmd/stack"+s.dirFlag())
	s.printf("%s", values.Replace(`The API in a browser: URL/docs

Paste these:
  curl -s URL/v1/products -H 'Authorization: Bearer sk_test_demo'
  curl -si URL/v1/customers -H 'Authorization: Bearer sk_test_demo' -H 'Content-Type: application/json' \
    -H 'Idempotency-Key: try-1' -d '{"name":"Ada","email":"ada@example.com"}'      # again: X-Idempotent-Replay: true
  curl -s 'http://PSP/v1/charges'                                                  # what was really charged
  STACK kill api-1      # everything goes on; then: start api-1
  STACK down
`))
}

// ConsoleURL is the address of the console, or "" if the stack has none.
func (s *Stack) ConsoleURL() string {
	if !s.Console {
		return ""
	}
	return "http://" + s.Addr(Console)
}
