package testenv

import (
	"context"
	"errors"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/oncepay/oncepay/internal/localserver"
	"github.com/oncepay/oncepay/internal/wait"
)

// Pair is a PostgreSQL primary of one test with a hot standby that follows it, as processes of this
// machine. Its methods fail the test on an error.
type Pair struct {
	// URL names both servers; a client finds the one that takes writes.
	URL string
	// Primary and Standby are what they were at the beginning.
	Primary, Standby *localserver.Server

	t testing.TB
}

// PostgresPair starts a pair with an empty database. The standby follows asynchronously.
func PostgresPair(t testing.TB) *Pair {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), startTimeout)
	defer cancel()
	cfg := localserver.PostgresConfig{DieWithParent: true, Fsync: true} // without it nothing can be synchronous
	start := func(server *localserver.Server, err error) *localserver.Server {
		if err != nil {
			t.Fatalf("testenv: %v", err)
		}
		t.Cleanup(func() { _ = server.Stop() })
		return server
	}
	p := &Pair{t: t}
	p.Primary = start(localserver.StartPostgres(ctx, cfg))
	p.Standby = start(localserver.StartStandby(ctx, cfg, p.Primary.Addr))
	p.URL = localserver.PostgresURL(p.Primary.Addr+","+p.Standby.Addr) + "&target_session_attrs=read-write"
	p.CatchUp()
	return p
}

// CatchUp returns when the standby has applied all that the primary has written.
func (p *Pair) CatchUp() {
	p.t.Helper()
	p.do("catch up", func(ctx context.Context) error { return localserver.AwaitStandby(ctx, p.Primary.Addr) })
}

// Synchronize makes the primary answer a commit only when the standby has applied it.
func (p *Pair) Synchronize() {
	p.t.Helper()
	p.do("synchronize", func(ctx context.Context) error { return localserver.WaitForStandbys(ctx, p.Primary.Addr) })
}

// Detach keeps the standby from receiving anything more.
func (p *Pair) Detach() {
	p.t.Helper()
	p.do("detach the standby", func(ctx context.Context) error {
		conn, err := pgx.Connect(ctx, localserver.PostgresURL(p.Standby.Addr))
		if err != nil {
			return err
		}
		defer func() { _ = conn.Close(ctx) }()
		for _, statement := range []string{"ALTER SYSTEM SET primary_conninfo = ''", "SELECT pg_reload_conf()"} {
			if _, err := conn.Exec(ctx, statement); err != nil {
				return err
			}
		}
		return wait.Until(ctx, localserver.PollInterval, func(ctx context.Context) error {
			var receivers int
			err := conn.QueryRow(ctx, "SELECT count(*) FROM pg_stat_wal_receiver").Scan(&receivers)
			if err == nil && receivers > 0 {
				err = errors.New("it is still connected")
			}
			return err
		})
	})
}

// FailOver ends the primary at once, and promotes the standby.
func (p *Pair) FailOver() {
	p.t.Helper()
	p.do("fail over", func(ctx context.Context) error {
		if err := p.Primary.Process.Kill(); err != nil {
			return err
		}
		return localserver.Promote(ctx, p.Standby.Addr)
	})
}

func (p *Pair) do(what string, step func(context.Context) error) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	if err := step(ctx); err != nil {
		p.t.Fatalf("testenv: %s: %v", what, err)
	}
}
