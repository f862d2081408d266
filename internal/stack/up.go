package stack

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/oncepay/oncepay/internal/wait"
)

// doorTimeout bounds the wait, after every service is ready, until a request gets through all of
// them: nginx may have marked a replica as failed for a second.
const doorTimeout = 15 * time.Second

// errNothingStarted marks a refusal: `up` has changed nothing.
var errNothingStarted = errors.New("nothing was started")

func (s *Stack) up(ctx context.Context) error {
	begun := time.Now()
	isNew := s.driver == nil
	why, err := s.settle(ctx)
	if err != nil {
		return err
	}
	s.printf("oncepay on the %s driver (%s), in %s\n", s.state.data.Driver, why, s.Dir)
	if s.Direct && !s.direct {
		s.printf("the compose driver connects its services through the fault proxy in any case\n")
	}
	_ = s.faults().healAll(ctx) // of an earlier `up`; a proxy that doesn't run yet has none
	if s.isReplicated() {
		_ = s.healReplication(ctx)
	}
	err = s.driver.up(ctx)
	if errors.Is(err, errNothingStarted) && isNew {
		return errors.Join(err, removeLocked(s.Dir))
	}
	if err != nil {
		return s.hint(err)
	}
	t := s.step("door", s.addr(Nginx))
	if err := wait.For(ctx, doorTimeout, pollInterval, s.probeDoor); err != nil {
		return s.hint(t.failed(err))
	}
	t.done("GET /v1/products: 200")
	s.printf("%s", s.summary(time.Since(begun)))
	return nil
}

// settle decides driver, ports and environment, or keeps those of the stack that is up, and writes
// them down.
func (s *Stack) settle(ctx context.Context) (why string, err error) {
	known := s.state.data
	name := s.Driver
	switch {
	case known.Driver != "" && name != "" && name != Auto && name != known.Driver:
		return "", fmt.Errorf("the stack in %s is on the %s driver: take it down first", s.Dir, known.Driver)
	case known.Driver != "" && s.PortOffset != 0 && s.PortOffset != known.PortOffset:
		return "", fmt.Errorf("the stack in %s has port offset %d: take it down first", s.Dir, known.PortOffset)
	case known.Driver != "" && s.Redis != "" && s.isReplicated() != (s.Redis == Sentinel):
		return "", fmt.Errorf("the stack in %s has another kind of Redis: take it down first", s.Dir)
	case known.Driver != "" && s.Postgres != "" && s.Postgres != cmp.Or(known.Postgres, Single):
		return "", fmt.Errorf("the stack in %s has another kind of PostgreSQL: take it down first", s.Dir)
	case known.Driver != "" && s.Direct && !known.Direct:
		return "", fmt.Errorf("the stack in %s has the fault proxy: take it down first", s.Dir)
	case known.Driver != "":
		name, why = known.Driver, "as before"
	case s.Postgres != "" && s.Postgres != Single && name == Compose:
		return "", errors.New("only the native driver can do --postgres standby: leave --driver out, or say --driver native")
	case s.Postgres != "" && s.Postgres != Single:
		name, why = Native, "as PostgreSQL with a standby needs it"
	case s.Redis == Sentinel && name == Compose:
		return "", errors.New("only the native driver can do --redis sentinel: leave --driver out, or say --driver native")
	case s.Direct && name == Compose:
		return "", errors.New("only the native driver can do --direct: leave --driver out, or say --driver native")
	case s.Redis == Sentinel:
		name, why = Native, "as Redis with Sentinel needs it"
	case name == "" || name == Auto:
		name, why = s.chooseDriver(ctx)
	default:
		why = "as asked for"
	}
	if s.ReplicaProgram != "" && name != Native {
		return "", fmt.Errorf("another program for the replicas needs the native driver, this is %s", name)
	}
	env := slices.Clone(s.Env)
	slices.Sort(env)
	err = s.state.update(func(d *stateData) {
		d.Driver, d.PortOffset, d.Env, d.Replica = name, s.offset, env, s.ReplicaProgram
		d.Direct = d.Direct || s.Direct && name == Native
		if s.Postgres != Single && s.Postgres != "" {
			d.Postgres = s.Postgres
		}
		if s.Redis == Sentinel {
			d.Redis = Sentinel
		}
	})
	s.direct = s.state.data.Direct
	s.driver = s.newDriver(name)
	return why, err
}

// hint tells how to go on after a start that failed or was interrupted.
func (s *Stack) hint(err error) error {
	if interrupted(err) {
		return errors.New("interrupted; `stack up` goes on from here, `stack down` removes what is there")
	}
	return err
}

func (s *Stack) down(ctx context.Context, keepData bool) error {
	t := s.step("down", "")
	if s.driver != nil {
		if err := s.driver.down(ctx, keepData); err != nil {
			return t.failed(err)
		}
	}
	if keepData && s.driver != nil {
		if err := s.dropAllBut(dataEntries...); err != nil {
			return t.failed(err)
		}
		t.done("stopped, data kept")
		return nil
	}
	if err := removeLocked(s.Dir); err != nil {
		return t.failed(err)
	}
	t.done("all removed")
	return nil
}

// dataEntries are what `down --keep-data` leaves in the folder.
var dataEntries = []string{lockName, "state.json", Postgres, "pspsim.journal"}

func (s *Stack) dropAllBut(keep ...string) error {
	entries, err := os.ReadDir(s.Dir)
	for _, entry := range entries {
		if !slices.Contains(keep, entry.Name()) {
			err = errors.Join(err, os.RemoveAll(filepath.Join(s.Dir, entry.Name())))
		}
	}
	return err
}
