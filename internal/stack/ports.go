package stack

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/oncepay/oncepay/internal/localserver"
	"github.com/oncepay/oncepay/internal/wait"
)

// lentTimeout bounds the wait for a port that a client's connection uses: the kernel keeps it for a
// minute after the connection's end (TIME_WAIT), and probes and tests hold connections for seconds.
const lentTimeout = 75 * time.Second

// holdPorts takes the ports of the services that don't run before anything is started, so that a
// stranger on one of them is named at once and the kernel lends none of them to a client meanwhile.
func (d *nativeDriver) holdPorts(ctx context.Context) error {
	var errs []error
	for _, name := range d.Services() {
		if d.known(name).Process.Alive() {
			continue
		}
		err := d.hold(ctx, name)
		if err != nil && name == Console {
			err = fmt.Errorf("%w (--no-console leaves the console out)", err)
		}
		errs = append(errs, err)
	}
	err := errors.Join(errs...)
	if err != nil {
		d.release()
	}
	return portsTaken(err)
}

// hold takes the ports of one service. It waits for a port that is lent to a client, as only time
// brings that back.
func (d *nativeDriver) hold(ctx context.Context, name string) error {
	var errs []error
	for _, number := range d.Ports(name) {
		port, err := localserver.HoldPort(number)
		if taken, ok := errors.AsType[*localserver.TakenError](err); ok && taken.Lent {
			d.printf("%v: waiting up to %s for it\n", taken, lentTimeout)
			err = wait.For(ctx, lentTimeout, localserver.PollInterval, func(context.Context) error {
				port, err = localserver.HoldPort(number)
				return err
			})
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", name, err))
			continue
		}
		d.held = append(d.held, port)
	}
	return errors.Join(errs...)
}

func (d *nativeDriver) release() {
	for _, port := range d.held {
		port.Release()
	}
	d.held = nil
}

// FreeOffset is a port offset at which no port is taken, for a stack beside others. It holds all of
// them until release.
func FreeOffset() (offset int, release func()) {
	t, d := Topology{Offset: rand.IntN(maxOffset)}, nativeDriver{}
	for _, s := range services {
		for _, number := range t.Ports(s.name) {
			port, err := localserver.HoldPort(number)
			if err != nil {
				d.release()
				return FreeOffset()
			}
			d.held = append(d.held, port)
		}
	}
	return t.Offset, d.release
}
