package app

import (
	"crypto/sha256"
	"encoding/base64"
	"io"
	"log/slog"
	"net/netip"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/internal/postgres"
	"github.com/oncepay/oncepay/internal/testenv"
)

// random is as short as a secret may be.
const random = "q8Zr2LwX5vTn7KcJ0mPdYb3h"

// safe is a production setting that nothing is wrong with.
func safe() Config {
	return Config{Environment: Production,
		DatabaseURL:   "postgres://a:hunter2@db.example.com/shop?sslmode=verify-full",
		RedisURL:      "rediss://a:hunter2@redis.example.com/0",
		Provider:      ProviderStripe,
		PSPURL:        "https://provider.example.com",
		WebhookSecret: whsec(random),
		Store:         StoreRedis, RecordSecrets: []string{random},
	}
}

// whsec is a secret of Standard Webhooks.
func whsec(secret string) string { return "whsec_" + base64.StdEncoding.EncodeToString([]byte(secret)) }

func TestProduction_RefusesUnsafeSettings(t *testing.T) {
	t.Parallel()
	require.NoError(t, safe().checkProduction())
	set := map[string]func(*Config, string){
		"DATABASE_URL":                func(c *Config, v string) { c.DatabaseURL = v },
		"REDIS_URL":                   func(c *Config, v string) { c.RedisURL = v },
		"PSP_URL":                     func(c *Config, v string) { c.PSPURL = v },
		"PSP_WEBHOOK_SECRET":          func(c *Config, v string) { c.WebhookSecret = v },
		"PSP_WEBHOOK_SECRET_PREVIOUS": func(c *Config, v string) { c.WebhookSecretPrevious = v },
		"STRIPE_WEBHOOK_SECRET":       func(c *Config, v string) { c.StripeWebhookSecret = v },
		"PSP=":                        func(c *Config, v string) { c.Provider = v },
		"LOG_SECRET":                  func(c *Config, v string) { c.LogSecret = v },
		"AUTH_CACHE_TTL":              func(c *Config, v string) { c.AuthCacheTTL, _ = time.ParseDuration(v) },
		"TRUSTED_PROXIES": func(c *Config, v string) {
			for network := range strings.SplitSeq(v, ",") {
				c.TrustedProxies = append(c.TrustedProxies, netip.MustParsePrefix(network))
			}
		},
		"MAIL_URL": func(c *Config, v string) { c.MailURL, c.MailFrom = v, "shop@example.com" },
		"IDEMPOTENCY_RECORD_SECRETS": func(c *Config, v string) {
			c.RecordSecrets = strings.FieldsFunc(v, func(r rune) bool { return r == ',' })
		},
	}
	for variable, values := range map[string]struct{ refused, accepted []string }{
		"DATABASE_URL": {
			refused: []string{
				"postgres://a:hunter2@db.example.com/shop", "postgres://a:hunter2@db.example.com/shop?sslmode=require",
				"postgres://a:hunter2@db.example.com/shop?sslmode=disable", "postgres://a:hunter2@127.0.0.1,db.example.com/shop?sslmode=prefer",
				"postgres://a:hunter2@db.example.com/shop?sslmode=verify-ca",
			},
			accepted: []string{
				"postgres://a:b@127.0.0.1/shop?sslmode=disable", "postgres://a:b@localhost/shop", "postgres://a:b@[::1]/shop",
				"postgres:///shop?host=/var/run/postgresql",
			},
		},
		"REDIS_URL": {
			refused: []string{
				"redis://a:hunter2@redis.example.com", "rediss://redis.example.com", "rediss://a:hunter2@redis.example.com?skip_verify=true",
				"redis+sentinel://a:hunter2@127.0.0.1/master", "redis+cluster://a:hunter2@127.0.0.1,redis.example.com",
				"redis+cluster://127.0.0.1:6401",
			},
			accepted: []string{"redis://127.0.0.1:6379/0", "redis://localhost", "rediss+sentinel://a:hunter2@redis.example.com/master", ""},
		},
		"PSP_URL": {refused: []string{"http://provider.example.com"}, accepted: []string{"http://127.0.0.1:8090", "http://[::1]:8090"}},
		"MAIL_URL": {
			refused:  []string{"smtp://a:hunter2@mail.example.com"},
			accepted: []string{"smtp://127.0.0.1:1025", "smtp+starttls://a:hunter2@mail.example.com", "smtps://a:hunter2@mail.example.com", ""},
		},
		"PSP_WEBHOOK_SECRET": {refused: []string{whsec(published), whsec(random[1:]), "whsec_!", whsec(strings.Repeat("\x00", 32))}, accepted: []string{""}},
		"IDEMPOTENCY_RECORD_SECRETS": {
			refused:  []string{"", publishedRecordSecret, random[1:], random + ",short", strings.Repeat(" ", 30), "RANDOM"},
			accepted: []string{random + ",2" + random},
		},
		"STRIPE_WEBHOOK_SECRET": {
			refused:  []string{whsec(published), "whsec_" + random[1:], "whsec_" + strings.Repeat("0", 40)},
			accepted: []string{"", "whsec_" + random},
		},
		"TRUSTED_PROXIES": {
			refused: []string{
				"0.0.0.0/0", "::/0", "0.0.0.0/1,128.0.0.0/1", "::/1,8000::/1", "128.0.0.0/1", "10.0.0.0/7", "1.0.0.0/8,2.0.0.0/16", "2000::/3",
				"2001::/16,2002::/17", "0.0.0.0/2,64.0.0.0/2,128.0.0.0/2,192.0.0.0/2",
			},
			accepted: []string{
				"10.0.0.0/8", "127.0.0.0/8,::1/128,10.0.0.0/8,172.16.0.0/12,192.168.0.0/16,100.64.0.0/10,fc00::/7",
				"104.16.0.0/13,172.64.0.0/13,131.0.72.0/22,2400:cb00::/32,2a06:98c0::/29", "1.0.0.0/8,1.0.0.0/8,1.2.0.0/16",
			},
		},
		"PSP=":                        {refused: []string{ProviderSimulator}, accepted: []string{ProviderStripe}},
		"LOG_SECRET":                  {refused: []string{"a", random[1:], strings.Repeat("ab", 20)}, accepted: []string{"", random}},
		"AUTH_CACHE_TTL":              {refused: []string{"24h", "1m1s"}, accepted: []string{"0s", "2s", "1m"}},
		"PSP_WEBHOOK_SECRET_PREVIOUS": {refused: []string{whsec(published), whsec("s")}, accepted: []string{"", whsec("p" + random)}},
	} {
		for _, value := range values.refused {
			cfg := safe()
			set[variable](&cfg, value)
			err := cfg.checkProduction()
			require.ErrorContains(t, err, variable, value)
			require.NotContains(t, err.Error(), "hunter2", "passwords stay out of messages")
			cfg.Environment = Development
			require.NoError(t, cfg.checkProduction(), "development may do all this")
		}
		for _, value := range values.accepted {
			cfg := safe()
			set[variable](&cfg, value)
			require.NoError(t, cfg.checkProduction(), value)
		}
	}
}

func TestProduction_NamesAllSettingsAtOnce(t *testing.T) {
	t.Parallel()
	err := Config{Environment: Production, Store: StoreRedis, DatabaseURL: "postgres://db/shop", RedisURL: "redis://redis", PSPURL: "http://provider", Provider: ProviderStripe,
		WebhookSecret: whsec(published)}.checkProduction()
	for _, variable := range []string{"ENVIRONMENT", "DATABASE_URL", "REDIS_URL needs TLS", "REDIS_URL needs a password", "PSP_URL", "PSP_WEBHOOK_SECRET", "IDEMPOTENCY_RECORD_SECRETS"} {
		require.ErrorContains(t, err, variable)
	}
}

// TestProduction_TakesAClientCertificateInsteadOfAPassword of Redis.
func TestProduction_TakesAClientCertificateInsteadOfAPassword(t *testing.T) {
	t.Parallel()
	server := testenv.RedisMutualTLS(t)
	cfg := safe()
	cfg.RedisURL = strings.Replace(server.URL, "127.0.0.1", "redis.example.com", 1)
	require.NoError(t, cfg.checkProduction())
	cfg.RedisURL, _, _ = strings.Cut(cfg.RedisURL, "&")
	require.ErrorContains(t, cfg.checkProduction(), "REDIS_URL needs a password or a client certificate")
}

// TestProduction_CommandsSendNoPasswordInClear: migrate, apikey and outbox, too.
func TestProduction_CommandsSendNoPasswordInClear(t *testing.T) {
	t.Parallel()
	cfg := safe()
	cfg.DatabaseURL = "postgres://a:hunter2@db.example.com/shop?sslmode=disable"
	err := ListEvents(t.Context(), cfg, slog.New(slog.DiscardHandler), io.Discard, 1)
	require.ErrorContains(t, err, "DATABASE_URL needs sslmode=verify-full")
}

// TestProduction_KeepsTheSchema unless the command says that all data may go.
func TestProduction_KeepsTheSchema(t *testing.T) {
	t.Parallel()
	cfg, log := testConfig(t), slog.New(slog.DiscardHandler)
	cfg.Environment = Production
	_, err := Migrate(t.Context(), cfg, log, Down)
	require.ErrorContains(t, err, "migrate down --discard-keys")
	version, err := Migrate(t.Context(), cfg, log, "version")
	require.NoError(t, err)
	require.Positive(t, version)
	version, err = Migrate(t.Context(), cfg, log, DownWithKeys)
	require.NoError(t, err)
	require.Zero(t, version)
}

// inProductionOn is a configuration on the servers of another one.
func inProductionOn(cfg Config) Config {
	cfg.Environment, cfg.RecordSecrets = Production, safe().RecordSecrets
	cfg.Provider, cfg.PSPURL, cfg.StripeKey = ProviderStripe, "", "sk_live_1"
	return cfg
}

// TestProduction_RefusesARoleThatMayDoMore than serve: the one that migrates has all rights.
func TestProduction_RefusesARoleThatMayDoMore(t *testing.T) {
	t.Parallel()
	cfg := testConfig(t)
	require.ErrorContains(t, serve(t, inProductionOn(cfg)).awaitEnd(), ": set DATABASE_SERVICE_ROLE for oncepay migrate up")

	cfg.DatabaseServiceRole, cfg.DatabaseServicePassword = "service_"+strings.ReplaceAll(uuid.NewString(), "-", ""), "p"
	_, err := Migrate(t.Context(), cfg, slog.New(slog.DiscardHandler), Up)
	require.NoError(t, err)
	served, err := url.Parse(cfg.DatabaseURL)
	require.NoError(t, err)
	served.User = url.UserPassword(cfg.DatabaseServiceRole, "p")
	cfg.DatabaseURL = served.String()
	serve(t, inProductionOn(cfg)).awaitReady()
}

// TestProduction_RefusesDemoKeys until they are revoked.
func TestProduction_RefusesDemoKeys(t *testing.T) {
	t.Parallel()
	cfg := testConfig(t)
	require.NoError(t, Seed(t.Context(), cfg, slog.New(slog.DiscardHandler)))
	replica := serve(t, inProductionOn(cfg))
	require.ErrorContains(t, replica.awaitEnd(), "2 API keys of the demo data are not revoked")

	pool, err := pgxpool.New(t.Context(), cfg.DatabaseURL)
	require.NoError(t, err)
	defer pool.Close()
	demo := sha256.Sum256([]byte(postgres.DemoKey))
	_, err = pool.Exec(t.Context(), "UPDATE api_keys SET revoked_at = now() WHERE hash = $1", demo[:])
	require.NoError(t, err)
	valid, err := postgres.CountDemoKeys(t.Context(), pool)
	require.NoError(t, err)
	require.Equal(t, 1, valid, "the other account's key")
}
