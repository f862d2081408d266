package main

import (
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/internal/access"
	"github.com/oncepay/oncepay/internal/background"
	"github.com/oncepay/oncepay/internal/postgres"
	"github.com/oncepay/oncepay/internal/testenv"
)

// TestAccounts_KeysLiveAndDie: each step is noticed by a replica, which here is its ring alone.
func TestAccounts_KeysLiveAndDie(t *testing.T) {
	t.Parallel()
	url := testenv.Postgres(t)
	run := func(args ...string) string {
		out, err := oncepay(t, []string{"DATABASE_URL=" + url}, args...)
		require.NoError(t, err, "%q", args)
		return strings.TrimSpace(out)
	}
	pool, err := postgres.Open(t.Context(), postgres.Config{URL: url})
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	ring := access.NewRing(postgres.NewStore(pool, postgres.Options{}), background.Schedule{})
	opens := func(key string) (access.Key, error) {
		require.NoError(t, ring.Refresh(t.Context()))
		return ring.Find(t.Context(), access.HashOf(key), time.Hour)
	}
	first := func(out string) (key, prefix string) {
		key, _, _ = strings.Cut(out, "\n")
		return key, key[:len("sk_live_")+8]
	}

	account := run("account", "add", "Shop")
	key, prefix := first(run("apikey", "issue", account))
	opened, err := opens(key)
	require.NoError(t, err)
	require.Equal(t, account, opened.Account.String())
	require.False(t, opened.ReadOnly)
	reader, _ := first(run("apikey", "issue", "--read-only", "--expires", "1h", account))
	opened, err = opens(reader)
	require.NoError(t, err)
	require.True(t, opened.ReadOnly)
	list := run("apikey", "list")
	require.Contains(t, list, prefix)
	require.Contains(t, list, "valid until ")
	require.NotContains(t, list, key, "it is shown once")

	next, _ := first(run("apikey", "rotate", "--grace", "0s", prefix))
	_, err = opens(key)
	require.ErrorIs(t, err, access.ErrUnknown, "the grace is over")
	_, err = opens(next)
	require.NoError(t, err)

	run("account", "suspend", account)
	opened, err = opens(next)
	require.NoError(t, err)
	require.True(t, opened.Suspended)
	require.Contains(t, run("apikey", "list"), "account suspended")
	run("account", "activate", account)
	opened, err = opens(next)
	require.NoError(t, err)
	require.False(t, opened.Suspended)

	_, nextPrefix := first(next)
	run("apikey", "revoke", nextPrefix)
	_, err = opens(next)
	require.ErrorIs(t, err, access.ErrUnknown)
	require.Contains(t, run("apikey", "list"), "revoked ")
}

// TestAccounts_RotationKeepsRightsAndEnd of a key, and revives none.
func TestAccounts_RotationKeepsRightsAndEnd(t *testing.T) {
	t.Parallel()
	environ := []string{"DATABASE_URL=" + testenv.Postgres(t)}
	run := func(args ...string) string {
		out, err := oncepay(t, environ, args...)
		require.NoError(t, err, "%q", args)
		return strings.TrimSpace(out)
	}
	stateOf := func(prefix string) string {
		for line := range strings.Lines(run("apikey", "list")) {
			if fields := strings.Fields(line); fields[0] == prefix {
				return strings.Join(append(fields[3:4], fields[5:]...), " ")
			}
		}
		return "absent"
	}
	const prefix = len("sk_live_") + 8
	account := run("account", "add", "Shop")

	old := run("apikey", "issue", "--read-only", "--expires", "1h", account)[:prefix]
	before := stateOf(old)
	next := run("apikey", "rotate", "--grace", "1m", old)[:prefix]
	require.Equal(t, before, stateOf(next))
	require.NotEqual(t, before, stateOf(old), "it ends after the grace")
	forever := run("apikey", "issue", account)[:prefix]
	require.Equal(t, "write valid", stateOf(run("apikey", "rotate", forever)[:prefix]))

	revoked, expired := run("apikey", "issue", account)[:prefix], run("apikey", "issue", "--expires", "1ns", account)[:prefix]
	run("apikey", "revoke", revoked)
	listed := run("apikey", "list")
	for _, ended := range []string{revoked, expired} {
		_, err := oncepay(t, environ, "apikey", "rotate", ended)
		require.ErrorContains(t, err, "it is revoked or has expired")
	}
	require.Equal(t, listed, run("apikey", "list"))
}

func TestAccounts_UnknownOnesAreRefused(t *testing.T) {
	t.Parallel()
	environ := []string{"DATABASE_URL=" + testenv.Postgres(t)}
	for _, args := range [][]string{
		{"apikey", "issue", uuid.NewString()}, {"apikey", "revoke", "sk_live_NONE"}, {"apikey", "rotate", "sk_live_NONE"}, {"account", "suspend", uuid.NewString()},
	} {
		_, err := oncepay(t, environ, args...)
		require.ErrorContains(t, err, "nothing was changed", "%q", args)
	}
	_, err := oncepay(t, append(environ, "REDIS_URL="+testenv.Redis(t)), "customer", "erase", uuid.NewString())
	require.ErrorContains(t, err, "customer_not_found")
	for _, args := range [][]string{
		{"apikey"}, {"apikey", "forge"}, {"apikey", "issue"}, {"apikey", "issue", "shop"}, {"apikey", "issue", uuid.NewString(), "--read-only"},
		{"customer"}, {"customer", "erase"}, {"customer", "erase", "ada@example.com"}, {"customer", "find", uuid.NewString()},
		{"apikey", "list", "all"}, {"apikey", "rotate", "--grace", "-1s", "p"}, {"apikey", "issue", "--expires", "0s", uuid.NewString()}, {"account"}, {"account", "add"}, {"account", "add", "a\nb"}, {"account", "delete", uuid.NewString()},
	} {
		_, err := oncepay(t, environ, args...)
		require.ErrorIs(t, err, errUsage, "%q", args)
	}
}
