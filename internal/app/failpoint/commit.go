//go:build failpoints

package failpoint

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Pool makes a pool anew with a tracer that sees the commits.
func Pool(ctx context.Context, pool *pgxpool.Pool) (*pgxpool.Pool, error) {
	config := pool.Config()
	config.ConnConfig.Tracer = commitTracer{config.ConnConfig.Tracer}
	traced, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("make a pool with failpoints: %w", err)
	}
	pool.Close()
	return traced, nil
}

// commitTracer reaches failpoints around the batches that commit.
type commitTracer struct{ pgx.QueryTracer }

type commitKey struct{}

// TraceQueryStart passes on to the tracer that was there before, if any.
func (t commitTracer) TraceQueryStart(ctx context.Context, conn *pgx.Conn, data pgx.TraceQueryStartData) context.Context {
	if t.QueryTracer == nil {
		return ctx
	}
	return t.QueryTracer.TraceQueryStart(ctx, conn, data)
}

// TraceQueryEnd passes on, too.
func (t commitTracer) TraceQueryEnd(ctx context.Context, conn *pgx.Conn, data pgx.TraceQueryEndData) {
	if t.QueryTracer != nil {
		t.QueryTracer.TraceQueryEnd(ctx, conn, data)
	}
}

// TraceBatchStart is called before a batch is sent.
func (commitTracer) TraceBatchStart(ctx context.Context, _ *pgx.Conn, data pgx.TraceBatchStartData) context.Context {
	for _, query := range data.Batch.QueuedQueries {
		if query.SQL == "commit" {
			reach(beforeCommit)
			return context.WithValue(ctx, commitKey{}, true)
		}
	}
	return ctx
}

// TraceBatchQuery is called for each answer; a commit's end is the batch's.
func (commitTracer) TraceBatchQuery(context.Context, *pgx.Conn, pgx.TraceBatchQueryData) {}

// TraceBatchEnd is called when all answers are there.
func (commitTracer) TraceBatchEnd(ctx context.Context, _ *pgx.Conn, data pgx.TraceBatchEndData) {
	if commits, _ := ctx.Value(commitKey{}).(bool); commits && data.Err == nil {
		reach(afterCommit)
	}
}
