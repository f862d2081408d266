package testenv

import (
	"context"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/internal/localserver"
)

// Pooler is a PgBouncer of one test, a process also with TESTENV=docker.
type Pooler struct {
	*Server
	mode string
}

// PgBouncer starts a pooler in front of the PostgreSQL of a URL. The mode is that of its pool,
// "transaction" or "session". Its URL names the same database, user and options.
func PgBouncer(t testing.TB, databaseURL, mode string) *Pooler {
	t.Helper()
	u, err := url.Parse(databaseURL)
	require.NoError(t, err)
	pooler := &Pooler{newServer(t, localserver.PgBouncer(u.Host, mode), localserver.Config{}), mode}
	u.Host = pooler.Addr
	pooler.URL = u.String()
	return pooler
}

// SessionModes are the query modes of pgx that need one session for all transactions of a
// connection, SharedModes those that do not.
var (
	SessionModes = []string{"cache_statement", "describe_exec"}
	SharedModes  = []string{"cache_describe", "exec", "simple_protocol"}
)

// InQueryMode is the URL of a database with default_query_exec_mode.
func InQueryMode(databaseURL, mode string) string {
	return databaseURL + "&default_query_exec_mode=" + mode
}

// EachQueryMode runs a test in each query mode on PostgreSQL itself, and in the SharedModes behind
// a pooler that shares its sessions among transactions. The test passes the URLs of its databases
// through via.
func EachQueryMode(t *testing.T, test func(t *testing.T, via func(databaseURL string) string)) {
	t.Helper()
	for _, mode := range slices.Concat(SessionModes, SharedModes) {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			test(t, func(databaseURL string) string { return InQueryMode(databaseURL, mode) })
		})
	}
	for _, mode := range SharedModes {
		t.Run(mode+" behind PgBouncer", func(t *testing.T) {
			t.Parallel()
			direct := sharedPostgres(t).Addr
			pooler := PgBouncer(t, localserver.PostgresURL(direct), "transaction")
			test(t, func(databaseURL string) string {
				return InQueryMode(strings.Replace(databaseURL, direct, pooler.Addr, 1), mode)
			})
		})
	}
}

// MoveTo leads the clients to the server at addr between two transactions. Their connections stay.
func (p *Pooler) MoveTo(addr string) {
	p.t.Helper()
	p.ask("PAUSE")
	_, port, err := net.SplitHostPort(p.Addr)
	require.NoError(p.t, err)
	number, err := strconv.Atoi(port)
	require.NoError(p.t, err)
	_, err = localserver.PgBouncer(addr, p.mode).Command(p.t.Context(), localserver.Config{Dir: p.process.DataDir, Port: number})
	require.NoError(p.t, err, "testenv: write the pooler's configuration")
	p.ask("RELOAD", "RESUME")
}

func (p *Pooler) ask(commands ...string) {
	p.t.Helper()
	do(p.t, commands[0], func(ctx context.Context) error { return localserver.AskPgBouncer(ctx, p.Addr, commands...) })
}
