package stack

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/oncepay/oncepay/internal/localserver"
	"github.com/oncepay/oncepay/internal/programs"
	"github.com/oncepay/oncepay/internal/wait"
)

// keepTimeout bounds the question whether a service that runs already may stay.
const keepTimeout = 3 * time.Second

// up starts the data stores while the programs are being built, and the replicas when the schema is
// there.
func (d *nativeDriver) up(ctx context.Context) error {
	if err := os.MkdirAll(filepath.Dir(d.logPath("any")), 0o755); err != nil {
		return err
	}
	defer d.release()
	idle := slices.DeleteFunc(d.Services(), func(name string) bool { return d.known(name).Process.Alive() })
	if err := d.hold(ctx, idle...); err != nil {
		return err
	}
	if err := programs.Ensure(ctx, d.options.Out, d.options.NoInstall, programs.Stack); err != nil {
		return fmt.Errorf("%w: %w", errNothingStarted, err)
	}
	for _, do := range []func(context.Context) error{d.ensureStores, d.ensureStandby, d.migrate} {
		if err := do(ctx); err != nil {
			return err
		}
	}
	return d.ensure(ctx, API1, API2, Nginx, Console)
}

// ensureStores brings up what the replicas depend on, and builds our programs meanwhile.
func (d *nativeDriver) ensureStores(ctx context.Context) error {
	stores, ctx := errgroup.WithContext(ctx)
	stores.Go(func() error { return d.ensure(ctx, d.Primary()) })
	stores.Go(func() error { return d.ensureRedis(ctx) })
	stores.Go(func() error {
		if err := d.build(ctx); err != nil {
			return err
		}
		return d.ensure(ctx, PSP, Mail, Proxy)
	})
	return stores.Wait()
}

// ensureRedis brings up one server, or the pair and then the sentinels, which would take a pair
// that is about to start for dead.
func (d *nativeDriver) ensureRedis(ctx context.Context) error {
	for _, names := range [][]string{{Redis}, {RedisReplica}, sentinels} {
		if err := d.ensure(ctx, names...); err != nil {
			return err
		}
	}
	return nil
}

// migrate runs oncepay's one-shot commands.
func (d *nativeDriver) migrate(ctx context.Context) error {
	for _, args := range [][]string{{"migrate", "up"}, {"seed"}} {
		err := d.step(args[0], "", func() (string, error) {
			_, err := d.Oncepay(ctx, args...)
			return "done", err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// ensure leaves services that are well and have the right settings alone, and otherwise starts them
// anew, all at once. Those that are no part of this stack are left out.
func (d *nativeDriver) ensure(ctx context.Context, names ...string) error {
	group, ctx := errgroup.WithContext(ctx)
	for _, name := range names {
		if slices.Contains(d.Services(), name) {
			group.Go(func() error {
				return d.step(name, d.Addr(name), func() (string, error) { return d.ensureOne(ctx, name) })
			})
		}
	}
	return group.Wait()
}

// ensureOne returns what it has come to.
func (d *nativeDriver) ensureOne(ctx context.Context, name string) (state string, err error) {
	run, err := d.prepare(ctx, name)
	if err != nil {
		return "", err
	}
	probe := func(ctx context.Context) error { return d.probe(ctx, name) }
	known := d.known(name)
	if known.Process.Alive() {
		_ = known.Process.Signal(syscall.SIGCONT)
		if known.Settings == run.Digest() && wait.For(ctx, keepTimeout, localserver.PollInterval, probe) == nil {
			return "ready (was running)", nil
		}
		if err := d.control(ctx, "stop", name); err != nil {
			return "", err
		}
	}
	exited, err := d.spawn(name, run)
	if err != nil {
		return "", err
	}
	return "ready", localserver.WithLog(localserver.AwaitReady(ctx, exited, probe), run.Log)
}

// spawn starts a process and remembers it at once.
func (d *nativeDriver) spawn(name string, run localserver.Command) (exited <-chan struct{}, err error) {
	process, exited, err := run.Start()
	if err != nil {
		return nil, err
	}
	if err := d.remember(name, serviceState{Process: process, Settings: run.Digest(), Dir: run.Dir}); err != nil {
		return nil, errors.Join(err, process.Kill())
	}
	return exited, nil
}
