package app

import (
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestConfig_HasDefaults(t *testing.T) {
	t.Parallel()
	cfg, err := ParseConfig(nil)
	require.NoError(t, err)
	host, err := os.Hostname()
	require.NoError(t, err)
	require.Equal(t, Config{
		Environment: Production, Replica: host, LogLevel: slog.LevelInfo,
		HTTPAddr: "127.0.0.1:8081", OpsAddr: "127.0.0.1:9081",
		TrustedProxies:   []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")},
		DatabaseMaxConns: 20, PSPTimeout: 45 * time.Second,
		Lease: 15 * time.Second, PaymentTTL: 48 * time.Hour, OrderTTL: 24 * time.Hour, TombstoneTTL: 90 * 24 * time.Hour,
		PaymentDeadline: time.Minute, OrderDeadline: 5 * time.Second,
		Store: StoreRedis, Provider: ProviderSimulator, UnpaidOrderTTL: 30 * time.Minute, ExpiryInterval: 5 * time.Second,
		ReconcileGrace: time.Minute, ReconcileInterval: 5 * time.Second, SettleDeadline: 5 * time.Minute, PurgeInterval: time.Minute,
		OutboxRetention: 7 * 24 * time.Hour,
		AuthCacheTTL:    2 * time.Second, RateLimit: 300, AccountKeys: 250_000, AccountBytes: 256 << 20, OTLPProtocol: "http/protobuf",
		StartupDeadline: time.Minute, ShutdownNotice: time.Second, ShutdownDeadline: 100 * time.Second,
	}, cfg)
}

func TestConfig_ReadsTheEnvironment(t *testing.T) {
	t.Parallel()
	cfg, err := ParseConfig([]string{
		"REPLICA=api-1", "LOG_LEVEL=debug", "IDEMPOTENCY_LEASE=3s", "TRUSTED_PROXIES=10.0.0.0/8", "PSP_TIMEOUT=", "RATE_LIMIT=7",
		"DATABASE_URL=postgres://a:b@c/d", "REDIS_URL=redis://e", "PSP_URL=http://f", "UNRELATED=1",
	})
	require.NoError(t, err)
	require.Equal(t, "api-1", cfg.Replica)
	require.Equal(t, slog.LevelDebug, cfg.LogLevel)
	require.Equal(t, 3*time.Second, cfg.Lease)
	require.Equal(t, []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}, cfg.TrustedProxies)
	require.Equal(t, 45*time.Second, cfg.PSPTimeout, "set to nothing is unset")
	require.Equal(t, 7, cfg.RateLimit)
	require.NoError(t, cfg.RequireServe())
}

func TestConfig_NamesTheVariableThatIsWrong(t *testing.T) {
	t.Parallel()
	for variable, values := range map[string][]string{
		"ENVIRONMENT":               {"staging"},
		"LOG_LEVEL":                 {"loud"},
		"HTTP_ADDR":                 {"8081"},
		"OPS_ADDR":                  {"localhost"},
		"TRUSTED_PROXIES":           {"127.0.0.1", "127.0.0.0/8,nonsense", "::ffff:127.0.0.0/104"},
		"DATABASE_URL":              {"mysql://user:hunter2@host/db", "host=hunter2"},
		"DATABASE_MAX_CONNS":        {"0", "many"},
		"REDIS_URL":                 {"host:6379", "redis://:hunter2%@host", "redis+sentinel://:hunter2@a:1,b:2"},
		"PSP_URL":                   {"127.0.0.1:8090"},
		"PSP_TIMEOUT":               {"45", "0s"},
		"IDEMPOTENCY_LEASE":         {"999ms", "soon"},
		"IDEMPOTENCY_PAYMENT_TTL":   {"-1h"},
		"IDEMPOTENCY_ORDER_TTL":     {"0", "29m"},
		"IDEMPOTENCY_TOMBSTONE_TTL": {"47h"},
		"PAYMENT_DEADLINE":          {"0s"},
		"ORDER_DEADLINE":            {"0s"},
		"AUTH_CACHE_TTL":            {"-1s"},
		"RATE_LIMIT":                {"0", "1.5"},
		"STARTUP_DEADLINE":          {"0s"},
		"SHUTDOWN_NOTICE":           {"-1s"},
		"SHUTDOWN_DEADLINE":         {"0s"},
		"OUTBOX_RETENTION":          {"0s", "a week"},

		"IDEMPOTENCY_UNSIGNED_RECORDS": {"true"}, // of an earlier release
	} {
		for _, value := range values {
			_, err := ParseConfig([]string{variable + "=" + value})
			require.ErrorContains(t, err, "configuration: "+variable, value)
			require.NotContains(t, err.Error(), "hunter2", "passwords stay out of messages")
		}
	}
}

// TestConfig_ReadsEachSettingFromAFile too: secrets in the environment are seen by more programs.
func TestConfig_ReadsEachSettingFromAFile(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	file := func(name, text string) string {
		require.NoError(t, os.WriteFile(filepath.Join(folder, name), []byte(text), 0o400))
		return name + "_FILE=" + filepath.Join(folder, name)
	}
	cfg, err := ParseConfig([]string{file("DATABASE_URL", "postgres://a:b@c/d\n"), file("IDEMPOTENCY_RECORD_SECRETS", "new one,old one"), file("RATE_LIMIT", "7\r\n")})
	require.NoError(t, err)
	require.Equal(t, "postgres://a:b@c/d", cfg.DatabaseURL)
	require.Equal(t, []string{"new one", "old one"}, cfg.RecordSecrets)
	require.Equal(t, 7, cfg.RateLimit)

	wrong := file("MAIL_URL", "ftp://a:hunter2@b")
	_, err = ParseConfig([]string{wrong})
	require.ErrorContains(t, err, "MAIL_URL")
	require.NotContains(t, err.Error(), "hunter2")
	_, err = ParseConfig([]string{file("LOG_SECRET", "a"), "LOG_SECRET=b", file("MAIL_FROM", "\n"), "REDIS_URL_FILE=" + folder + "/none"})
	for _, want := range []string{"LOG_SECRET and LOG_SECRET_FILE are both set", "MAIL_FROM is empty", "REDIS_URL_FILE: open"} {
		require.ErrorContains(t, err, want)
	}
}

func TestConfig_ReportsAllErrorsAtOnce(t *testing.T) {
	t.Parallel()
	_, err := ParseConfig([]string{"PSP_TIMEOUT=x", "RATE_LIMIT=y"})
	require.ErrorContains(t, err, "PSP_TIMEOUT: ")
	require.ErrorContains(t, err, "RATE_LIMIT: ")

	err = Config{}.RequireServe()
	for _, variable := range []string{"DATABASE_URL", "REDIS_URL", "PSP_URL"} {
		require.ErrorContains(t, err, variable+" must be set")
	}
}
