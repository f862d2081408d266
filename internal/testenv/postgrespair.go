package testenv

import (
	"context"
	"testing"

	"github.com/oncepay/oncepay/internal/localserver"
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
	start := func(kind localserver.Kind) (server *localserver.Server) {
		do(t, "start a pair", func(ctx context.Context) (err error) {
			server, err = kind.Start(ctx, localserver.Config{DieWithParent: true}) // with fsync, without which nothing is synchronous
			return err
		})
		t.Cleanup(func() { _ = server.Stop() })
		return server
	}
	p := &Pair{t: t, Primary: start(localserver.Postgres)}
	p.Standby = start(localserver.Standby(p.Primary.Addr))
	p.URL = localserver.PostgresURL(p.Primary.Addr+","+p.Standby.Addr) + "&target_session_attrs=read-write"
	p.CatchUp()
	return p
}

// CatchUp returns when the standby has applied all that the primary has written.
func (p *Pair) CatchUp() {
	p.t.Helper()
	do(p.t, "catch up", func(ctx context.Context) error { return localserver.AwaitStandby(ctx, p.Primary.Addr) })
}

// Synchronize makes the primary answer a commit only when the standby has applied it.
func (p *Pair) Synchronize() {
	p.t.Helper()
	do(p.t, "synchronize", func(ctx context.Context) error { return localserver.WaitForStandbys(ctx, p.Primary.Addr) })
}

// Detach keeps the standby from receiving anything more.
func (p *Pair) Detach() {
	p.t.Helper()
	do(p.t, "detach the standby", func(ctx context.Context) error {
		err := localserver.ExecPostgres(ctx, p.Standby.Addr, "ALTER SYSTEM SET primary_conninfo = ''", "SELECT pg_reload_conf()")
		if err != nil {
			return err
		}
		return localserver.AwaitPostgres(ctx, p.Standby.Addr, "SELECT 1 / (count(*) = 0)::int FROM pg_stat_wal_receiver")
	})
}

// FailOver ends the primary at once, and promotes the standby.
func (p *Pair) FailOver() {
	p.t.Helper()
	do(p.t, "fail over", func(ctx context.Context) error {
		if err := p.Primary.Process.Kill(); err != nil {
			return err
		}
		return localserver.Promote(ctx, p.Standby.Addr)
	})
}
