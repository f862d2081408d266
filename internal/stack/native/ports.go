package native

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/oncepay/oncepay/internal/localserver"
	"github.com/oncepay/oncepay/internal/stack/deployment"
	"github.com/oncepay/oncepay/internal/stack/topology"
	"github.com/oncepay/oncepay/internal/wait"
)

// lentTimeout bounds the wait for a port that a client's connection uses: the kernel keeps it for a
// minute after the connection's end (TIME_WAIT), and probes and tests hold connections for seconds.
const lentTimeout = 75 * time.Second

// holdPorts takes the ports of the services that don't run before anything is started, so that a
// stranger on one of them is named at once and the kernel lends none of them to a client meanwhile.
func (d *Driver) holdPorts(ctx context.Context) error {
	var errs []error
	for _, name := range d.Services() {
		if d.State.Service(name).Process.Alive() {
			continue
		}
		err := d.hold(ctx, name)
		if err != nil && name == topology.Console {
			err = fmt.Errorf("%w (--no-console leaves the console out)", err)
		}
		errs = append(errs, err)
	}
	err := errors.Join(errs...)
	if err != nil {
		d.release()
	}
	return deployment.PortsTaken(err)
}

// hold takes the ports of one service. It waits for a port that is lent to a client, as only time
// brings that back.
func (d *Driver) hold(ctx context.Context, name string) error {
	var errs []error
	for _, number := range d.Ports(name) {
		port, err := localserver.HoldPort(number)
		if taken, ok := errors.AsType[*localserver.TakenError](err); ok && taken.Lent {
			d.Printf("%v: waiting up to %s for it\n", taken, lentTimeout)
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

func (d *Driver) release() {
	for _, port := range d.held {
		port.Release()
	}
	d.held = nil
}
