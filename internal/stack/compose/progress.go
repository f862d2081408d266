package compose

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/oncepay/oncepay/internal/stack/deployment"
)

// watched prints a line for every service that gets ready while do runs, and then the ones that
// stayed as they were.
func (d *Driver) watched(ctx context.Context, do func(context.Context) error) error {
	before, err := d.containers(ctx)
	if err != nil {
		return err
	}
	shown := map[string]bool{}
	begun := d.Step("compose", "up")
	defer begun.Stop()
	result := make(chan error, 1)
	go func() { result <- do(ctx) }()
	ticker := time.NewTicker(lookInterval)
	defer ticker.Stop()
	for {
		select {
		case err := <-result:
			d.showReady(ctx, begun, before, shown)
			d.showReady(ctx, begun, nil, shown)
			return err
		case <-ticker.C:
			d.showReady(ctx, begun, before, shown)
		}
	}
}

// showReady prints the services that are ready and weren't before.
func (d *Driver) showReady(ctx context.Context, begun deployment.Step, before map[string]container, shown map[string]bool) {
	containers, err := d.containers(ctx)
	if err != nil {
		return // compose itself will say what is wrong
	}
	for _, name := range slices.Sorted(maps.Keys(containers)) {
		one, old := containers[name], before[name]
		isOld := old.ID == one.ID && (old.isHealthy() || old.isDone()) // compose may still replace it
		isReady := one.isHealthy() || one.isDone()
		if shown[name] || isOld || !isReady {
			continue
		}
		shown[name] = true
		line := begun.Part(name, d.Addr(name))
		switch {
		case one.isDone():
			begun.Part(name, "").Done("done")
		case before == nil:
			line.Done("ready (was running)")
		default:
			line.Done("ready")
		}
	}
}
