package native

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/oncepay/oncepay/internal/localserver"
	"github.com/oncepay/oncepay/internal/programs"
	"github.com/oncepay/oncepay/internal/stack/deployment"
	"github.com/oncepay/oncepay/internal/stack/topology"
	"github.com/oncepay/oncepay/internal/wait"
)

// keepTimeout bounds the question whether a service that runs already may stay.
const keepTimeout = 3 * time.Second

// Up starts what does not run or runs with other settings, and returns when everything is ready. It
// starts the data stores while the programs are being built, and the replicas when the schema is
// there.
func (d *Driver) Up(ctx context.Context) error {
	if err := d.makeDirs(); err != nil {
		return err
	}
	if err := d.holdPorts(ctx); err != nil {
		return err
	}
	defer d.release()
	if err := programs.Ensure(ctx, d.Out, d.NoInstall, programs.Stack); err != nil {
		return fmt.Errorf("%w: %w", deployment.ErrNothingStarted, err)
	}
	if err := d.ensureStores(ctx); err != nil {
		return err
	}
	if err := d.ensureStandby(ctx); err != nil {
		return err
	}
	if err := d.runStep(ctx, "migrate", "up"); err != nil {
		return err
	}
	if err := d.runStep(ctx, "seed"); err != nil {
		return err
	}
	if d.Console {
		return d.ensureAll(ctx, topology.API1, topology.API2, topology.Nginx, topology.Console)
	}
	return d.ensureAll(ctx, topology.API1, topology.API2, topology.Nginx)
}

// ensureStores brings up what the replicas depend on, and builds our programs meanwhile.
func (d *Driver) ensureStores(ctx context.Context) error {
	stores, ctx := errgroup.WithContext(ctx)
	stores.Go(func() error { return d.ensure(ctx, d.Primary()) })
	stores.Go(func() error { return d.ensureRedis(ctx) })
	stores.Go(func() error {
		if err := d.Build(ctx); err != nil {
			return err
		}
		if d.Direct {
			return d.ensureAll(ctx, topology.PSP, topology.Mail)
		}
		return d.ensureAll(ctx, topology.Proxy, topology.PSP, topology.Mail)
	})
	return stores.Wait()
}

func (d *Driver) ensureAll(ctx context.Context, names ...string) error {
	group, ctx := errgroup.WithContext(ctx)
	for _, name := range names {
		group.Go(func() error { return d.ensure(ctx, name) })
	}
	return group.Wait()
}

// ensure leaves a service that is well and has the right settings alone, and otherwise starts it
// anew.
func (d *Driver) ensure(ctx context.Context, name string) error {
	t := d.Step(name, d.Addr(name))
	run, err := d.prepare(ctx, name)
	if err != nil {
		return t.Failed(err)
	}
	known := d.State.Service(name)
	if known.Process.Alive() {
		_ = known.Process.Signal(syscall.SIGCONT)
		if known.Settings == run.Digest() && d.isWell(ctx, name) {
			t.Done("ready (was running)")
			return nil
		}
		if err := d.Stop(ctx, name); err != nil {
			return t.Failed(err)
		}
	}
	if err := d.launch(ctx, name, run); err != nil {
		return t.Failed(err)
	}
	t.Done("ready")
	return nil
}

func (d *Driver) isWell(ctx context.Context, name string) bool {
	return wait.For(ctx, keepTimeout, localserver.PollInterval, d.probe(name)) == nil
}

// launch starts a process and waits until it is ready.
func (d *Driver) launch(ctx context.Context, name string, run localserver.Command) error {
	exited, err := d.spawn(name, run)
	if err != nil {
		return err
	}
	return localserver.WithLog(localserver.AwaitReady(ctx, exited, d.probe(name)), run.Log)
}

func (d *Driver) probe(name string) func(context.Context) error {
	return func(ctx context.Context) error { return d.Probe(ctx, name) }
}

// spawn starts a process and remembers it at once.
func (d *Driver) spawn(name string, run localserver.Command) (exited <-chan struct{}, err error) {
	process, exited, err := run.Start()
	if err != nil {
		return nil, err
	}
	service := deployment.ServiceState{Process: process, Settings: run.Digest(), Dir: run.Dir, Started: time.Now()}
	if err := d.State.SetService(name, service); err != nil {
		return nil, errors.Join(err, process.Kill())
	}
	return exited, nil
}

// runStep runs one of oncepay's one-shot commands as a step.
func (d *Driver) runStep(ctx context.Context, args ...string) error {
	t := d.Step(args[0], "")
	if _, err := d.Oncepay(ctx, args...); err != nil {
		return t.Failed(err)
	}
	t.Done("done")
	return nil
}
