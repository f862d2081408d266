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
	Primary, Standby *Server

	t testing.TB
}

// PostgresPair starts a pair with an empty database. The standby follows asynchronously.
func PostgresPair(t testing.TB) *Pair {
	t.Helper()
	withSync := localserver.Config{} // without fsync nothing is synchronous
	primary := newServer(t, localserver.Postgres, withSync)
	standby := newServer(t, localserver.Standby(primary.Addr), withSync)
	url := localserver.PostgresURL(primary.Addr+","+standby.Addr) + "&target_session_attrs=read-write"
	p := &Pair{t: t, Primary: primary, Standby: standby, URL: url}
	p.CatchUp()
	return p
}

// CatchUp returns when the standby has applied all that the primary has written.
func (p *Pair) CatchUp() { p.t.Helper(); p.at(p.Primary, "catch up", localserver.AwaitStandby) }

// Synchronize makes the primary answer a commit only when the standby has applied it.
func (p *Pair) Synchronize() {
	p.t.Helper()
	p.at(p.Primary, "synchronize", localserver.WaitForStandbys)
}

// Detach keeps the standby from receiving anything more.
func (p *Pair) Detach() {
	p.t.Helper()
	p.at(p.Standby, "detach the standby", func(ctx context.Context, addr string) error {
		err := localserver.ExecPostgres(ctx, addr, "ALTER SYSTEM SET primary_conninfo = ''", "SELECT pg_reload_conf()")
		if err != nil {
			return err
		}
		return localserver.AwaitPostgres(ctx, addr, "SELECT 1 / (count(*) = 0)::int FROM pg_stat_wal_receiver")
	})
}

// FailOver ends the primary at once, and promotes the standby.
func (p *Pair) FailOver() {
	p.t.Helper()
	p.at(p.Primary, "end the primary", func(context.Context, string) error { return p.Primary.process.Process.Kill() })
	p.at(p.Standby, "promote the standby", localserver.Promote)
}

func (p *Pair) at(server *Server, what string, step func(ctx context.Context, addr string) error) {
	p.t.Helper()
	do(p.t, what, func(ctx context.Context) error { return step(ctx, server.Addr) })
}
