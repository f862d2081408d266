package switchboard

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/oncepay/oncepay/internal/stack/faultproxy"
	"github.com/oncepay/oncepay/internal/stack/sentinel"
	"github.com/oncepay/oncepay/internal/stack/topology"
)

func (b Board) partition(ctx context.Context, args []string) error {
	return b.onEdge(ctx, args, faultproxy.Faults.Partition, sentinel.CutReplication)
}

func (b Board) heal(ctx context.Context, args []string) error {
	return b.onEdge(ctx, args, faultproxy.Faults.Heal, sentinel.HealReplication)
}

// onEdge does something to a connection; the one between the two servers of a replicated Redis has
// its own way.
func (b Board) onEdge(ctx context.Context, args []string, do func(faultproxy.Faults, context.Context, topology.Edge) error,
	toReplication func(context.Context, *topology.Topology) error,
) error {
	if b.IsReplicated() && topology.Replication.Joins(args[0], args[1]) {
		return toReplication(ctx, b.Topology)
	}
	return b.eachEdge(args, func(e topology.Edge) error { return do(b.faults(), ctx, e) })
}

func (b Board) slow(ctx context.Context, args []string) error {
	delay, err := time.ParseDuration(args[2])
	if err != nil {
		return err
	}
	return b.eachEdge(args, func(e topology.Edge) error { return b.faults().Slow(ctx, e, delay) })
}

func (b Board) cut(ctx context.Context, args []string) error {
	bytes, err := strconv.Atoi(args[2])
	if err != nil {
		return err
	}
	return b.eachEdge(args, func(e topology.Edge) error { return b.faults().Cut(ctx, e, bytes) })
}

func (b Board) eachEdge(args []string, do func(topology.Edge) error) error {
	edges, err := b.FindEdges(args[0], args[1])
	for _, e := range edges {
		err = errors.Join(err, do(e))
	}
	return err
}
