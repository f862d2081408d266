package main

import (
	"context"
	"errors"
	"time"

	"github.com/oncepay/oncepay/loadtest/shop"
)

// sizes measures the bytes that an order, a payment and their keys take.
func sizes(ctx context.Context, b *bench) (map[string]any, error) {
	var placed []shop.Order
	order, err := b.bytesOf(ctx, func() (err error) { placed, err = b.shop.Place(ctx, b.cfg.sized); return err })
	if err != nil {
		return nil, err
	}
	payment, err := b.bytesOf(ctx, func() error {
		_, err := b.attack(ctx, "payments", b.shop.PaymentsOf(placed), 0, time.Minute)
		return err
	})
	if err != nil {
		return nil, err
	}
	kept, err := b.redisSizes(ctx)
	return map[string]any{"sized": b.cfg.sized, "atOnce": shop.AtOnce, "order": order, "payment": payment, "kept": kept}, err
}

// bytesOf is by how many bytes each table, and all of them together, has grown for each operation
// and all its events, with its indexes and before any vacuum.
func (b *bench) bytesOf(ctx context.Context, do func() error) (sample, error) {
	bytes, err := grown(func() (found sample, err error) {
		err = b.db.QueryRow(ctx, `SELECT json_object_agg(coalesce(relname, 'all'), bytes) FROM (
			SELECT relname::text, sum(pg_total_relation_size(oid)) AS bytes FROM pg_class
			WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace GROUP BY ROLLUP (relname)) t`).Scan(&found)
		return found, err
	}, func() error {
		if err := do(); err != nil {
			return err
		}
		return b.await(ctx, "SELECT min(position) >= (SELECT coalesce(max(id), 0) FROM outbox) FROM consumer_cursors")
	})
	for name := range bytes {
		bytes[name] /= float64(b.cfg.sized)
	}
	return bytes, err
}

// redisSizes is the mean of MEMORY USAGE for each kind of record, by its key, and of an event in
// the stream, if there are any that no group is done with.
func (b *bench) redisSizes(ctx context.Context) (sample, error) {
	means := sample{}
	for kind, pattern := range map[string]string{"key of an order": "bench-*-order-*", "key of a card payment": "pay-*"} {
		names, err := b.redis.Keys(ctx, "idempotency:*:"+pattern).Result()
		for _, name := range names {
			used, unread := b.redis.MemoryUsage(ctx, name).Result()
			means[kind] += float64(used) / float64(len(names))
			err = errors.Join(err, unread)
		}
		if err != nil {
			return nil, err
		}
	}
	const stream = "oncepay:events"
	length, err := b.redis.XLen(ctx, stream).Result()
	if err != nil || length == 0 {
		return means, err
	}
	used, err := b.redis.MemoryUsage(ctx, stream, 0).Result()
	means["event in the stream"] = float64(used) / float64(length)
	return means, err
}
