package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	"gonum.org/v1/plot/plotter"
)

const (
	// fillBatches is how many statements fill each table: one for each first digit of a key, so
	// that the index of random keys grows at one place at a time.
	fillBatches = 16
	// purgeBegins is how long the purgers take at most to look for work: once a minute, with
	// jitter.
	purgeBegins = 2 * time.Minute
	// purgeEnds bounds the wait for their end, and drainEnds that for the effects of a backlog.
	purgeEnds, drainEnds = 10 * time.Minute, 10 * time.Minute
	// fillStep is how long is measured for one point of the curve, at the limit, and fillLimit
	// bounds the orders between the two windows.
	fillStep, fillLimit = 5 * time.Second, 6 * time.Minute
	// anyAccount is that of the events of a backlog, which nobody looks up.
	anyAccount = "00000000-0000-7000-8000-000000000000"
	// allConsumed asks whether every event has had its effects.
	allConsumed = "SELECT min(position) >= (SELECT coalesce(max(id), 0) FROM outbox) FROM consumer_cursors"
)

//go:embed millions.sql
var fillStatements string

// growth compares what an order costs PostgreSQL in the first minute with what it costs when many
// thousand are kept.
func growth(ctx context.Context, b *bench) (map[string]any, error) {
	found, err := b.interleave(ctx, 1, []trial{b.paced("first", b.cfg.window), {"between", b.fillUp}, b.paced("last", b.cfg.window)})
	return map[string]any{"pace": pace, "window": b.cfg.window, "more": found.Of("between", "answered").median, "found": found}, err
}

// paced has new orders placed below the limit.
func (b *bench) paced(name string, period time.Duration) trial {
	return trial{name, func(ctx context.Context) (sample, error) {
		return b.attack(ctx, name, b.shop.NewOrders, pace, period)
	}}
}

// fillUp places orders at the limit, and draws what they cost PostgreSQL by how many were kept.
func (b *bench) fillUp(ctx context.Context) (sample, error) {
	var kept int
	if err := b.db.QueryRow(ctx, "SELECT count(*) FROM orders").Scan(&kept); err != nil {
		return nil, err
	}
	more := 0.0
	var curve plotter.XYs
	for began := time.Now(); more < float64(b.cfg.more) && time.Since(began) < fillLimit; {
		between, err := b.attack(ctx, number(more)+" more orders", b.shop.NewOrders, 0, min(fillStep, b.cfg.window))
		if err != nil {
			return nil, err
		}
		more += between["answered"]
		curve = append(curve, plotter.XY{X: float64(kept) + more, Y: between["PostgreSQL"]})
	}
	b.plots["growth"] = drawLines("PostgreSQL's CPU per order, at the limit", "orders kept", "µs", false, []line{{"PostgreSQL", curve}})
	return sample{"answered": more}, nil
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
	return map[string]any{"pace": pace, "window": b.cfg.window, "orders": b.cfg.kept, "keys": b.cfg.keys(), "expired": b.cfg.expired(), "events": b.cfg.events(),
		"rows": rows, "found": found}, err
}

func (c config) keys() int    { return 2 * c.kept }
func (c config) expired() int { return c.kept / 5 }
func (c config) events() int  { return c.kept / 5 }

// statement is one of millions.sql, whose parameters are replaced.
func statement(name string, values ...string) string {
	_, text, _ := strings.Cut(fillStatements, "-- "+name+"\n")
	text, _, _ = strings.Cut(text, ";")
	return strings.NewReplacer(values...).Replace(text)
}

// fill inserts rows as orders of many days have left them.
func (b *bench) fill(ctx context.Context) (sample, error) {
	// Constraints were checked when such orders were placed; and a loss of this database does no
	// harm.
	if err := execute(ctx, b.db, "SET session_replication_role = replica", "SET synchronous_commit = off"); err != nil {
		return nil, err
	}
	share := func(of, batch int) string { return fmt.Sprint(of * batch / fillBatches) }
	for batch := range fillBatches {
		values := []string{":customer", b.shop.Customers[0], ":batch", fmt.Sprint(batch),
			":first_order", share(b.cfg.kept, batch), ":last_order", share(b.cfg.kept, batch+1) + " - 1",
			":first_key", share(b.cfg.keys(), batch), ":last_key", share(b.cfg.keys(), batch+1) + " - 1"}
		if err := execute(ctx, b.db, statement("orders", values...), statement("items", values...), statement("keys", values...)); err != nil {
			return nil, err
		}
		fmt.Fprintf(b.out, "  %s orders, %s keys\n", share(b.cfg.kept, batch+1), share(b.cfg.keys(), batch+1))
	}
	// What autovacuum has long done when that many orders have come one by one.
	return nil, execute(ctx, b.db, "VACUUM (ANALYZE) orders, order_items, idempotency_keys", "CHECKPOINT")
}

// purge measures orders while the purgers delete keys, and for how many seconds they do.
func (b *bench) purge(ctx context.Context) (orders sample, err error) {
	if err := execute(ctx, b.db, statement("expired", ":customer", b.shop.Customers[0], ":last_key", fmt.Sprint(b.cfg.expired()))); err != nil {
		return nil, err
	}
	if err := await(ctx, b.db, purgeBegins, "SELECT pg_stat_get_tuples_deleted('idempotency_keys'::regclass) > 0"); err != nil {
		return nil, fmt.Errorf("wait for the purgers: %w", err)
	}
	began, took := time.Now(), 0.0
	var purging errgroup.Group
	purging.Go(func() error {
		err := await(ctx, b.db, purgeEnds, "SELECT NOT EXISTS (SELECT FROM idempotency_keys WHERE status <> 'in_progress' AND expires_at < now())")
		took = time.Since(began).Seconds()
		return err
	})
	orders, err = b.attack(ctx, "while keys are purged", b.shop.NewOrders, pace, b.cfg.window)
	if err := errors.Join(err, purging.Wait()); err != nil {
		return nil, err
	}
	orders["purge"], orders["purged"] = took, float64(b.cfg.expired())/took
	return orders, nil
}

// drain has the service handle a backlog that comes at once. It returns how many events a second
// were published and had their effects, and what an event cost PostgreSQL.
func (b *bench) drain(ctx context.Context) (sample, error) {
	if err := execute(ctx, b.db, statement("backlog", ":account", anyAccount, ":last", fmt.Sprint(b.cfg.events()))); err != nil {
		return nil, err
	}
	began, events := time.Now(), float64(b.cfg.events())
	rate := func() float64 { return events / time.Since(began).Seconds() }
	return b.costing(func() (sample, error) {
		if err := await(ctx, b.db, drainEnds, "SELECT position >= (SELECT max(id) FROM outbox) FROM outbox_cursor"); err != nil {
			return nil, err
		}
		published := rate()
		err := await(ctx, b.db, drainEnds, allConsumed)
		return sample{"answered": events, "published": published, "handled": rate()}, err
	})
}
