package app

import (
	"bufio"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/internal/testenv"
)

func TestStart_WaitsForPostgresAndLogsIt(t *testing.T) {
	t.Parallel()
	database := testenv.PostgresServer(t)
	cfg := configFor(t, database.URL, testenv.Redis(t))
	require.NoError(t, Seed(t.Context(), cfg, slog.New(slog.DiscardHandler)))
	database.Stop()

	r := serve(t, cfg)
	require.Eventually(t, func() bool {
		return len(r.logs.lines(t, "msg", "waiting for PostgreSQL at "+database.Addr)) > 0
	}, patience, pause)
	require.Equal(t, http.StatusOK, r.operations("/livez").status)
	answer := r.operations("/readyz")
	require.Equal(t, http.StatusServiceUnavailable, answer.status)
	require.Equal(t, "starting", answer.field(t, "status"))

	database.Start()
	r.awaitReady()
	require.Equal(t, http.StatusOK, r.call(http.MethodGet, "/v1/orders", "", "").status)
}

func TestStart_FailsWithoutPostgres(t *testing.T) {
	t.Parallel()
	cfg := configFor(t, "postgres://oncepay@"+unusedAddr(t)+"/oncepay?sslmode=disable", testenv.Redis(t))
	cfg.StartupDeadline = 300 * time.Millisecond
	r := serve(t, cfg)
	require.ErrorContains(t, r.awaitEnd(), "for PostgreSQL at "+r.servers.pool.Config().ConnConfig.Host)
}

// TestStart_EndsAtOnceIfWaitingDoesNotHelp, of a replica and of a migration.
func TestStart_EndsAtOnceIfWaitingDoesNotHelp(t *testing.T) {
	t.Parallel()
	pooled := testenv.PgBouncer(t, testenv.Postgres(t), "transaction").URL
	for url, sentence := range map[string]string{
		pooled:                             "default_query_exec_mode",
		pooled + "&statement_timeout=4000": "unsupported startup parameter: statement_timeout",
	} {
		cfg := configFor(t, url, testenv.Redis(t))
		cfg.StartupDeadline = 2 * patience // longer than awaitEnd waits
		require.ErrorContains(t, serve(t, cfg).awaitEnd(), sentence)
		_, err := Migrate(t.Context(), cfg, slog.New(slog.DiscardHandler), "up")
		require.ErrorContains(t, err, sentence)
	}
}

func TestStart_NeedsTheSchema(t *testing.T) {
	t.Parallel()
	cfg := configFor(t, testenv.EmptyPostgres(t), testenv.Redis(t))
	cfg.StartupDeadline = 3 * time.Second // PostgreSQL must be found in it, on a busy machine too
	require.ErrorContains(t, serve(t, cfg).awaitEnd(), `run "oncepay migrate up"`)

	_, err := Migrate(t.Context(), cfg, slog.New(slog.DiscardHandler), "up")
	require.NoError(t, err)
	serve(t, cfg).awaitReady()
}

func TestStart_StoppedWhileWaitingIsAnOrderlyStop(t *testing.T) {
	t.Parallel()
	r := serve(t, configFor(t, "postgres://oncepay@"+unusedAddr(t)+"/oncepay?sslmode=disable", testenv.Redis(t)))
	require.Eventually(t, func() bool { return strings.Contains(r.logs.String(), "waiting for") }, patience, pause)
	r.stop()
	require.NoError(t, r.awaitEnd())
}

func TestStart_WithoutRedisUsesItWhenItComes(t *testing.T) {
	t.Parallel()
	redis := testenv.RedisServer(t)
	redis.Stop()
	cfg := configFor(t, testenv.Postgres(t), redis.URL)
	cfg.StartupDeadline = time.Second // the wait for Redis is no longer than this
	r := serveSeeded(t, cfg)
	require.Len(t, r.logs.lines(t, "level", "ERROR"), 1)
	require.Contains(t, r.logs.String(), "waiting for Redis at "+redis.Addr)

	ready := r.operations("/readyz")
	require.Equal(t, http.StatusOK, ready.status, "PostgreSQL decides")
	require.Contains(t, ready.body, `"redis":{"ok":false`)

	path := "/v1/orders/" + r.placeOrder() + "/payments" // fails open
	refused := r.call(http.MethodPost, path, "pay", cardPayment("tok_visa"))
	require.Equal(t, http.StatusServiceUnavailable, refused.status, refused.body)
	require.NotEmpty(t, refused.header.Get("Retry-After"))

	redis.Start()
	require.Eventually(t, func() bool {
		return r.call(http.MethodPost, path, "pay", cardPayment("tok_visa")).status == http.StatusCreated
	}, patience, pause)
}

func TestStart_RefusesAnOldRedis(t *testing.T) {
	t.Parallel()
	cfg := configFor(t, testenv.Postgres(t), "redis://"+oldRedis(t))
	require.ErrorContains(t, serve(t, cfg).awaitEnd(), "6.2.14 is too old")
}

func TestSeed_RefusesOutsideDevelopment(t *testing.T) {
	t.Parallel()
	cfg := testConfig(t)
	cfg.Environment = Production
	require.ErrorContains(t, Seed(t.Context(), cfg, slog.New(slog.DiscardHandler)), "development alone")
}

func TestPostgres_AwayIsAFast503AndRecovers(t *testing.T) {
	t.Parallel()
	database := testenv.PostgresServer(t)
	r := serveSeeded(t, configFor(t, database.URL, testenv.Redis(t)))
	order := `{"customer_id":"` + r.call(http.MethodPost, "/v1/customers", "c", `{"name":"Ada","email":"a@example.com"}`).field(t, "id") +
		`","items":[{"sku":"tee-black","quantity":1}]}`
	database.Stop()

	began := time.Now()
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() {
			got, err := r.try(http.MethodPost, "/v1/orders", "order", order)
			switch {
			case err != nil:
				t.Errorf("no answer: %v", err)
			case got.status != http.StatusServiceUnavailable && got.status != http.StatusConflict:
				t.Errorf("status %d: %s", got.status, got.body)
			case got.header.Get("Retry-After") == "":
				t.Errorf("no Retry-After: %s", got.body)
			}
		})
	}
	all.Wait()
	require.Less(t, time.Since(began), 5*time.Second, "fast")
	require.Equal(t, http.StatusServiceUnavailable, r.operations("/readyz").status)
	require.Equal(t, http.StatusOK, r.operations("/livez").status, "a restart would not help")

	database.Start()
	require.Eventually(t, func() bool { return r.operations("/readyz").status == http.StatusOK }, patience, pause)
	require.Eventually(t, func() bool {
		return r.call(http.MethodPost, "/v1/orders", "order", order).status == http.StatusCreated
	}, patience, pause)
}

// unusedAddr returns an address at which no server listens.
func unusedAddr(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { require.NoError(t, listener.Close()) }()
	return listener.Addr().String()
}

// oldRedis answers every command by the version of a server that is too old.
func oldRedis(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	var running sync.WaitGroup
	running.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			running.Go(func() { answerVersion(conn) })
		}
	})
	t.Cleanup(func() {
		require.NoError(t, listener.Close())
		running.Wait()
	})
	return listener.Addr().String()
}

func answerVersion(conn net.Conn) {
	defer func() { _ = conn.Close() }()
	for lines := bufio.NewScanner(conn); lines.Scan(); {
		switch strings.ToLower(lines.Text()) {
		case "hello":
			_, _ = io.WriteString(conn, "-ERR unknown command\r\n")
		case "info":
			_, _ = io.WriteString(conn, "$22\r\nredis_version:6.2.14\r\n\r\n")
		}
	}
}
