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
	last := []string{topology.API1, topology.API2, topology.Nginx}
	if d.Console {
		last = append(last, topology.Console)
	}
	return d.ensure(ctx, last...)
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
		ours := []string{topology.PSP, topology.Mail}
		if !d.Direct {
			ours = append(ours, topology.Proxy)
		}
		return d.ensure(ctx, ours...)
	})
	return stores.Wait()
}

// ensure leaves services that are well and have the right settings alone, and otherwise starts them
// anew, all at once.
func (d *Driver) ensure(ctx context.Context, names ...string) error {
	group, ctx := errgroup.WithContext(ctx)
	for _, name := range names {
		group.Go(func() error {
			t := d.Step(name, d.Addr(name))
			state, err := d.ensureOne(ctx, name)
			return t.End(state, err)
		})
	}
	return group.Wait()
}

// ensureOne returns what it has come to.
func (d *Driver) ensureOne(ctx context.Context, name string) (state string, err error) {
	run, err := d.prepare(ctx, name)
	if err != nil {
		return "", err
	}
	known := d.State.Service(name)
	if known.Process.Alive() {
		_ = known.Process.Signal(syscall.SIGCONT)
		if known.Settings == run.Digest() && wait.For(ctx, keepTimeout, localserver.PollInterval, d.probe(name)) == nil {
			return "ready (was running)", nil
		}
		if err := d.Stop(ctx, name); err != nil {
			return "", err
		}
	}
	exited, err := d.spawn(name, run)
	if err != nil {
		return "", err
	}
	return "ready", localserver.WithLog(localserver.AwaitReady(ctx, exited, d.probe(name)), run.Log)
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
	service := deployment.ServiceState{Process: process, Settings: run.Digest(), Dir: run.Dir}
	if err := d.State.SetService(name, service); err != nil {
		return nil, errors.Join(err, process.Kill())
	}
	return exited, nil
}

// runStep runs one of oncepay's one-shot commands as a step.
func (d *Driver) runStep(ctx context.Context, args ...string) error {
	t := d.Step(args[0], "")
	_, err := d.Oncepay(ctx, args...)
	return t.End("done", err)
}
