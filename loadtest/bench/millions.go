package main

import (
	"context"
	_ "embed"
	"fmt"
	"strings"
	"time"
)

// anyAccount is that of the events of a backlog, which nobody looks up.
const anyAccount = "00000000-0000-7000-8000-000000000000"

//go:embed millions.sql
var millionsSQL string

// paced has new orders placed below the limit.
func (b *bench) paced(name string, period time.Duration) trial {
	return trial{name, func(ctx context.Context) (sample, error) {
		return b.attack(ctx, name, b.shop.NewOrders, pace, period)
	}}
}

// millions measures what an order costs when a table has millions of rows, while keys are purged,
// and how quickly a backlog of events is handled.
func millions(ctx context.Context, b *bench) (map[string]any, error) {
	rows := []string{"empty", "full"}
	trials := []trial{b.paced("warm up", b.cfg.step), b.paced("empty", b.cfg.window), {"fill", b.fill}, b.paced("full", b.cfg.window)}
	if !b.cfg.quick { // the purgers look for work once a minute
		rows = append(rows, "full, keys are purged")
		trials = append(trials, trial{"full, keys are purged", b.purge})
	}
	found, err := b.interleave(ctx, 1, append(trials, trial{"a backlog", b.drain}))
	return map[string]any{"pace": pace, "window": b.cfg.window, "orders": float64(b.cfg.kept), "keys": float64(2 * b.cfg.kept), "some": float64(b.cfg.kept / 5),
		"rows": rows, "found": found}, err
}

// prepared executes some statements of millions.sql.
func (b *bench) prepared(ctx context.Context, names ...string) error {
	values := strings.NewReplacer(":customer", b.shop.Customers[0], ":account", anyAccount,
		":orders", fmt.Sprint(b.cfg.kept), ":keys", fmt.Sprint(2*b.cfg.kept), ":some", fmt.Sprint(b.cfg.kept/5))
	for _, name := range names {
		_, text, _ := strings.Cut(millionsSQL, "-- "+name+"\n")
		text, _, _ = strings.Cut(text, "\n\n")
		if _, err := b.db.Exec(ctx, values.Replace(text)); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

// fill inserts rows as orders of many days have left them.
func (b *bench) fill(ctx context.Context) (sample, error) {
	return nil, b.prepared(ctx, "fill", "vacuum", "checkpoint")
}

// purge measures orders while the purgers delete keys, and for how many seconds they do: for longer
// than these orders come.
func (b *bench) purge(ctx context.Context) (sample, error) {
	if err := b.prepared(ctx, "expired"); err != nil {
		return nil, err
	}
	if err := b.await(ctx, "SELECT pg_stat_get_tuples_deleted('idempotency_keys'::regclass) > 0"); err != nil {
		return nil, fmt.Errorf("wait for the purgers: %w", err)
	}
	began := time.Now()
	orders, err := b.attack(ctx, "while keys are purged", b.shop.NewOrders, pace, b.cfg.window)
	if err != nil {
		return nil, err
	}
	err = b.await(ctx, "SELECT NOT EXISTS (SELECT FROM idempotency_keys WHERE status <> 'in_progress' AND expires_at < now())")
	orders["purge"] = time.Since(began).Seconds()
	orders["purged"] = float64(b.cfg.kept/5) / orders["purge"]
	return orders, err
}

// drain has the service handle a backlog that comes at once. It returns how many events a second
// were published and had their effects, and what an event cost PostgreSQL.
func (b *bench) drain(ctx context.Context) (sample, error) {
	var confirmed, noticed int
	err := b.db.QueryRow(ctx, "SELECT (SELECT coalesce(max(id), 0) FROM order_confirmations), (SELECT coalesce(max(id), 0) FROM warehouse_notices)").
		Scan(&confirmed, &noticed)
	if err == nil {
		err = b.prepared(ctx, "backlog")
	}
	if err != nil {
		return nil, err
	}
	began, events := time.Now(), b.cfg.kept/5
	rate := func() float64 { return float64(events) / time.Since(began).Seconds() }
	// Not the groups' cursors, which follow in up to a second.
	effects := fmt.Sprintf("SELECT (SELECT max(id) >= %d FROM order_confirmations) AND (SELECT max(id) >= %d FROM warehouse_notices)",
		confirmed+events, noticed+events/2)
	return costing(b.processes, func() (sample, error) {
		if err := b.await(ctx, "SELECT position >= (SELECT max(id) FROM outbox) FROM outbox_cursor"); err != nil {
			return nil, err
		}
		published := rate()
		err := b.await(ctx, effects)
		return sample{"answered": float64(events), "published": published, "handled": rate()}, err
	})
}
