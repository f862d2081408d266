package main

import (
	"context"
	"slices"
	"time"

	"github.com/oncepay/oncepay/loadtest/books"
	"github.com/oncepay/oncepay/loadtest/faults/fault"
)

// losses keeps what the event stream held before each fault that makes Redis lose its data. The
// campaign repairs nothing: the service has to publish again what consumers have not had.
type losses struct {
	before []books.Stream
	since  time.Time // the last one
}

func losesRedis(runs []*fault.Run) bool {
	return slices.ContainsFunc(runs, func(r *fault.Run) bool { return slices.Contains(r.Breaks, fault.RedisLoses) })
}

// keepStream reads the event stream before it is lost.
func (c *campaign) keepStream(ctx context.Context) error {
	reader, err := c.reader(ctx)
	if err != nil {
		return err
	}
	ids, err := reader.Stream(ctx)
	c.losses.before = append(c.losses.before, books.Stream{Since: c.losses.since, IDs: ids})
	return err
}
