package stack

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/oncepay/oncepay/internal/localserver"
	"github.com/oncepay/oncepay/internal/wait"
)

// lentTimeout bounds the wait for a port that a client's connection uses: the kernel keeps it for a
// minute after the connection's end (TIME_WAIT), and probes and tests hold connections for seconds.
const lentTimeout = 75 * time.Second

// hold takes the ports of services until release, before any is started. So a stranger on one of
// them is named at once, and the kernel lends none to a client. It waits for a port that is lent.
func (s *Stack) hold(ctx context.Context, names ...string) error {
	for _, name := range names {
		for _, number := range s.Ports(name) {
			port, err := localserver.HoldPort(number)
			if taken, ok := errors.AsType[*localserver.TakenError](err); ok && taken.Lent {
				s.printf("%v: waiting up to %s for it\n", taken, lentTimeout)
				err = wait.For(ctx, lentTimeout, localserver.PollInterval, func(context.Context) error {
					port, err = localserver.HoldPort(number)
					return err
				})
			}
			if err != nil {
				return fmt.Errorf("%s: %w\n%w: stop what is there, or take --port-offset 100, or --no-console",
					name, err, errNothingStarted)
			}
			s.held = append(s.held, port)
		}
	}
	return nil
}

func (s *Stack) release() {
	for _, port := range s.held {
		port.Release()
	}
	s.held = nil
}

// Scripts start their stacks at offsets that are multiples of scriptStep. A stack whose offset is
// testShift above a multiple has no port in common with them. At offsets from unlent on, Linux
// lends none of the ports to clients (32768 to 60999 by default).
const scriptStep, testShift, unlent = 50, 14, 5600

// FreeOffset is a port offset for a test's stack, beside others and those of scripts. It holds its
// ports until release; a locked file keeps others from holding them, too. It panics if it cannot
// make the file.
func FreeOffset() (offset int, release func()) {
	of := &Topology{Offset: unlent + rand.IntN((maxOffset-unlent)/scriptStep)*scriptStep + testShift, Postgres: Standby, Redis: Sentinel, Console: true}
	s := Stack{Topology: of, options: Options{Out: io.Discard}}
	mark, err := os.Create(filepath.Join(os.TempDir(), fmt.Sprint("oncepay-port-offset-", s.Offset))) //nolint:gosec // it stays empty
	if err != nil {
		panic(err)
	}
	release = func() { s.release(); _ = mark.Close() }
	now, cancel := context.WithCancel(context.Background())
	cancel() // it waits for no port
	if syscall.Flock(int(mark.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) != nil || s.hold(now, s.Services()...) != nil {
		release()
		return FreeOffset()
	}
	return s.Offset, release
}
