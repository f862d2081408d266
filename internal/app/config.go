package app

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"net/url"
	"os"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/caarlos0/env/v11"

	"github.com/oncepay/oncepay/idempotency/redisstore"
	"github.com/oncepay/oncepay/internal/checkout"
	"github.com/oncepay/oncepay/internal/mailer"
	"github.com/oncepay/oncepay/internal/postgres"
	"github.com/oncepay/oncepay/internal/psp/stripe"
)

// Config is everything that can be set from outside, by the environment variable in the tag.
// Durations are written like 15s or 48h. A variable that is set to nothing counts as unset.
type Config struct {
	// Environment says whether this is development or production. Demo data, with API keys that
	// everybody knows, is possible only in development. In production a replica does not start with
	// demo keys that are valid, the simulator, a secret that is published, short or not random,
	// clients' addresses in TRUSTED_PROXIES, a role of PostgreSQL that may change the schema, or
	// connections to PostgreSQL, Redis or the provider without verified TLS that leave this
	// machine; nor do the other commands connect to PostgreSQL without it. That to a collector is
	// not looked at.
	Environment string `env:"ENVIRONMENT" envDefault:"production"`
	// Replica names this instance in the logs, as pod_id, and in development in the header
	// X-Served-By. The default is the host's name.
	Replica string `env:"REPLICA"`
	// LogLevel is the least level that is logged: debug, info, warn or error. At info each request
	// is a line, which is what one needs to answer a client's question.
	LogLevel slog.Level `env:"LOG_LEVEL" envDefault:"info"`
	// LogSecret is any secret of 24 random bytes or more, the same for all replicas. In production
	// the log has a short hash of each idempotency key, made with it, and oncepay log-key KEY makes
	// the same one. Without it keys are not logged.
	LogSecret string `env:"LOG_SECRET"`

	// HTTPAddr is where the API listens; port 0 takes a free one. Loopback, because a proxy belongs
	// in front of it.
	HTTPAddr string `env:"HTTP_ADDR" envDefault:"127.0.0.1:8081"`
	// OpsAddr is where /livez, /readyz and /metrics are. It is a port of its own, because they are
	// not for the public.
	OpsAddr string `env:"OPS_ADDR" envDefault:"127.0.0.1:9081"`
	// TrustedProxies are the networks whose X-Forwarded-For and X-Request-Start are believed: by
	// default only this machine.
	TrustedProxies []netip.Prefix `env:"TRUSTED_PROXIES" envDefault:"127.0.0.0/8,::1/128"`

	// DatabaseURL is the PostgreSQL database, postgres://user:password@host:port/name. It has no
	// default, because a wrong database is worse than none.
	DatabaseURL string `env:"DATABASE_URL"`
	// DatabaseServiceRole is the role that serves, for migrate: it gets the rights that the service
	// needs and loses all others in the schema. Empty: rights stay as they are.
	DatabaseServiceRole string `env:"DATABASE_SERVICE_ROLE"`
	// DatabaseServicePassword has migrate create the role, or set its password. PostgreSQL logs it
	// if it logs statements. Without it the role has to be there.
	DatabaseServicePassword string `env:"DATABASE_SERVICE_PASSWORD"`
	// DatabaseMaxConns bounds the connections of one replica. 20 serve about a thousand requests a
	// second, and two replicas, a migration and a psql stay well below PostgreSQL's default of 100.
	// They also bound how many requests are worked on at a time; the others wait or get 503
	// overloaded.
	DatabaseMaxConns int32 `env:"DATABASE_MAX_CONNS" envDefault:"20"`
	// RedisURL is the Redis that decides quickly: redis://user:password@host:port/0,
	// redis+sentinel://host:port,host:port/master-name or redis+cluster://host:port,host:port, and
	// with rediss for TLS. Events go through it, too.
	RedisURL string `env:"REDIS_URL"`
	// Store says where the records of idempotency keys are kept: redis, or postgres, which needs
	// Redis only for events and costs more round trips to the database. PostgreSQL decides finally
	// either way.
	Store string `env:"IDEMPOTENCY_STORE" envDefault:"redis"`

	// RecordSecrets sign the records in Redis, with commas between: the first one signs, all
	// verify. Each is any text of 24 bytes or more, the same for all replicas.
	RecordSecrets []string `env:"IDEMPOTENCY_RECORD_SECRETS"`

	// Provider says who moves money: simulator, a server with the API of pspsim, in development
	// alone; or stripe.
	Provider string `env:"PSP" envDefault:"simulator"`
	// PSPURL is the base URL of the payment provider. For stripe it may be empty: Stripe's own.
	PSPURL string `env:"PSP_URL"`
	// StripeKey is the secret key or a restricted key of Stripe's API: sk_live_… or rk_live_… in
	// production, and sk_test_… or rk_test_… otherwise.
	StripeKey string `env:"STRIPE_SECRET_KEY"`
	// StripeWebhookSecret is what Stripe signs its events with: the signing secret of the endpoint
	// /v1/webhooks/stripe. Without it, events of Stripe are refused.
	StripeWebhookSecret string `env:"STRIPE_WEBHOOK_SECRET"`
	// PSPTimeout bounds one call to the provider. Cards may be slow for half a minute; and what
	// comes after the call must fit into PaymentDeadline.
	PSPTimeout time.Duration `env:"PSP_TIMEOUT" envDefault:"45s"`
	// WebhookSecret is what the provider signs its events with: whsec_ and base64 (Standard
	// Webhooks). Without it, provider events are refused, and unknown outcomes wait for the client
	// or the reconciler.
	WebhookSecret string `env:"PSP_WEBHOOK_SECRET"`
	// WebhookSecretPrevious is accepted beside WebhookSecret, while the provider changes from one
	// to the other.
	WebhookSecretPrevious string `env:"PSP_WEBHOOK_SECRET_PREVIOUS"`

	// MailURL is the mail server that sends confirmations: smtp://user:password@host:port, with
	// STARTTLS if the server offers it; smtp+starttls, with STARTTLS always; or smtps. Empty:
	// confirmations are written and not sent, and never will be.
	MailURL string `env:"MAIL_URL"`
	// MailFrom is the sender of mails, such as Shop <shop@example.com>.
	MailFrom string `env:"MAIL_FROM"`

	// Lease is how long a key stays taken after the last heartbeat of its attempt, and so how long
	// a crash delays the retry. A heartbeat comes every third of the lease, so slow handlers don't
	// need a long one.
	Lease time.Duration `env:"IDEMPOTENCY_LEASE" envDefault:"15s"`
	// PaymentTTL is how long the answer to a movement of money is kept: long enough for retries
	// after a weekend.
	PaymentTTL time.Duration `env:"IDEMPOTENCY_PAYMENT_TTL" envDefault:"48h"`
	// OrderTTL is how long all other answers are kept: no shopper retries on the next day. It must
	// be 30m or more, so that a kept answer outlives all copies of its request.
	OrderTTL time.Duration `env:"IDEMPOTENCY_ORDER_TTL" envDefault:"24h"`
	// TombstoneTTL is how long it is remembered that a key moved money, counted from its answer:
	// when the answer has expired, the same request gets 409 instead of moving money again. 90
	// days, because a dispute or a forgotten batch job brings old requests back after weeks. It
	// must be at least 30m, and at least IDEMPOTENCY_PAYMENT_TTL.
	TombstoneTTL time.Duration `env:"IDEMPOTENCY_TOMBSTONE_TTL" envDefault:"2160h"`
	// PaymentDeadline bounds a handler that moves money: a call to the provider within PSPTimeout,
	// a second one if a later attempt has to look the first one up, and the transactions before and
	// after them.
	PaymentDeadline time.Duration `env:"PAYMENT_DEADLINE" envDefault:"60s"`
	// OrderDeadline bounds all other handlers, which take milliseconds. It is short because nginx
	// gives up on a paused replica only after the longest time that a request may take.
	OrderDeadline time.Duration `env:"ORDER_DEADLINE" envDefault:"5s"`

	// UnpaidOrderTTL is how long an unpaid order holds its stock: long enough to pay without hurry.
	UnpaidOrderTTL time.Duration `env:"UNPAID_ORDER_TTL" envDefault:"30m"`
	// ExpiryInterval is how often the expirer looks for orders that are unpaid for longer than
	// UnpaidOrderTTL. The query is cheap, and released stock should soon be for sale.
	ExpiryInterval time.Duration `env:"EXPIRY_INTERVAL" envDefault:"5s"`
	// ReconcileGrace is how long a payment may be processing before the reconciler asks the
	// provider itself: longer than PSPTimeout, so that it does not fence handlers that are about to
	// succeed.
	ReconcileGrace time.Duration `env:"RECONCILE_GRACE" envDefault:"1m"`
	// ReconcileInterval is how often the reconciler looks for payments that are processing for
	// longer than ReconcileGrace. There are few, so the query costs little.
	ReconcileInterval time.Duration `env:"RECONCILE_INTERVAL" envDefault:"5s"`
	// SettleDeadline is the time after which a payment that is still processing is reported as
	// overdue. By then the reconciler has tried several times, and a person should ask the
	// provider.
	SettleDeadline time.Duration `env:"PAYMENT_SETTLE_DEADLINE" envDefault:"5m"`
	// PurgeInterval is how often expired keys and old events are deleted. It is short, so that each
	// pass has little to delete. However much there is, a replica deletes for a tenth of the time:
	// 1,700 keys a second as measured.
	PurgeInterval time.Duration `env:"PURGE_INTERVAL" envDefault:"1m"`
	// OutboxRetention is how long events are kept, and so how far back oncepay outbox replay can
	// publish them again. An event that a consumer group has not handled is kept longer. A week, so
	// that an incident of the weekend can be repaired.
	OutboxRetention time.Duration `env:"OUTBOX_RETENTION" envDefault:"168h"`

	// AuthCacheTTL is how long a revoked API key, or a key of a suspended account, may still work.
	// Each replica has all valid keys in memory, and looks for changes twice in this time. While
	// PostgreSQL is away for longer, requests get 503. In production it is 1m at most.
	AuthCacheTTL time.Duration `env:"AUTH_CACHE_TTL" envDefault:"2s"`
	// RateLimit is how many requests a second each account may send to each replica. It stops
	// runaway clients and is no quota. All provider events together count as one account.
	RateLimit int `env:"RATE_LIMIT" envDefault:"300"`
	// AccountKeys is how many answers a replica keeps for one account at a time. Products that PUT
	// creates without a key count, too. Beyond it a new key, and a PUT without one, get 429, and
	// known keys are still answered. With two replicas it allows 160,000 orders a day, each with
	// its payment.
	AccountKeys int64 `env:"IDEMPOTENCY_ACCOUNT_KEYS" envDefault:"250000"`
	// AccountBytes is how many bytes of answers a replica keeps for one account at a time, in the
	// same way. The default is 256 MiB. With two replicas, one account fills at most half of a
	// Redis of 1 GiB.
	AccountBytes int64 `env:"IDEMPOTENCY_ACCOUNT_BYTES" envDefault:"268435456"`

	// OTLPEndpoint is the base URL of an OpenTelemetry collector, such as http://127.0.0.1:4318,
	// that takes traces over HTTP. Without one, no traces are made.
	OTLPEndpoint string `env:"OTEL_EXPORTER_OTLP_ENDPOINT"`
	// OTLPTracesEndpoint is the whole URL for traces; OTEL_EXPORTER_OTLP_ENDPOINT is then ignored.
	OTLPTracesEndpoint string `env:"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"`
	// OTLPProtocol is the protocol of the collector; only this one is supported.
	OTLPProtocol string `env:"OTEL_EXPORTER_OTLP_PROTOCOL" envDefault:"http/protobuf"`
	// TelemetryDisabled turns traces off, even with a collector.
	TelemetryDisabled bool `env:"OTEL_SDK_DISABLED"`

	// StartupDeadline bounds the wait for PostgreSQL and its schema. After it the process exits, so
	// that its supervisor learns of the failure.
	StartupDeadline time.Duration `env:"STARTUP_DEADLINE" envDefault:"60s"`
	// ShutdownNotice is for how long a replica that was told to stop still takes requests, and has
	// each answer close its connection, before the drain begins. A proxy that keeps connections
	// open then breaks none. It makes a stop this much longer.
	ShutdownNotice time.Duration `env:"SHUTDOWN_NOTICE" envDefault:"1s"`
	// ShutdownDeadline bounds the drain. It is longer than any request takes: a wait for another
	// attempt (30 s), then PaymentDeadline.
	ShutdownDeadline time.Duration `env:"SHUTDOWN_DEADLINE" envDefault:"100s"`
}

// Values of Config.Environment.
const (
	Development = "development"
	Production  = "production"
)

// ParseConfig reads the configuration from "NAME=value" pairs such as os.Environ returns. The value
// may also be in a file, which NAME_FILE names. Its error names every variable that is wrong. URLs
// may be missing: RequireDatabase and RequireServe say what a command needs.
func ParseConfig(environ []string) (Config, error) {
	set := env.ToMap(environ)
	for name, value := range set {
		if value == "" {
			delete(set, name)
		}
	}
	err := readFiles(set)
	if unsigned := set["IDEMPOTENCY_UNSIGNED_RECORDS"]; unsigned != "" && unsigned != "false" {
		err = errors.Join(err, errors.New("IDEMPOTENCY_UNSIGNED_RECORDS is no longer a setting, remove it: PostgreSQL decides where a record has no signature"))
	}
	if err != nil {
		return Config{}, fmt.Errorf("configuration: %w", err)
	}
	cfg, err := env.ParseAsWithOptions[Config](env.Options{Environment: set})
	if err != nil {
		return Config{}, fmt.Errorf("configuration: %w", nameVariables(err))
	}
	if err := cfg.check(); err != nil {
		return Config{}, fmt.Errorf("configuration: %w", err)
	}
	host, _ := os.Hostname()
	cfg.Replica = cmp.Or(cfg.Replica, host, "oncepay")
	return cfg, nil
}

// nameVariables replaces the names of fields by those of variables.
func nameVariables(err error) error {
	var all env.AggregateError
	if !errors.As(err, &all) {
		return err
	}
	named := make([]error, len(all.Errors))
	for i, e := range all.Errors {
		named[i] = e
		var parse env.ParseError
		if errors.As(e, &parse) {
			if field, ok := reflect.TypeFor[Config]().FieldByName(parse.Name); ok {
				named[i] = fmt.Errorf("%s: %w", field.Tag.Get("env"), parse.Err)
			}
		}
	}
	return errors.Join(named...)
}

// check looks at each value by itself.
func (c Config) check() error {
	var errs []error
	require := func(ok bool, variable, want string) {
		if !ok {
			errs = append(errs, fmt.Errorf("%s must be %s", variable, want))
		}
	}
	require(c.Environment == Development || c.Environment == Production, "ENVIRONMENT", "development or production")
	require(isAddr(c.HTTPAddr), "HTTP_ADDR", "host:port")
	require(isAddr(c.OpsAddr), "OPS_ADDR", "host:port")
	require(c.DatabaseMaxConns >= 1, "DATABASE_MAX_CONNS", "1 or more")
	require(!slices.ContainsFunc(c.TrustedProxies, func(n netip.Prefix) bool { return n.Addr().Is4In6() }), "TRUSTED_PROXIES", "IPv4 networks as such, without ::ffff:")
	require(c.RateLimit >= 1, "RATE_LIMIT", "1 or more")
	require(c.AccountKeys >= 1, "IDEMPOTENCY_ACCOUNT_KEYS", "1 or more")
	require(c.AccountBytes >= 1, "IDEMPOTENCY_ACCOUNT_BYTES", "1 or more")
	require(c.AuthCacheTTL >= 0, "AUTH_CACHE_TTL", "0s or more")
	// A heartbeat comes every third of the lease and takes up to half a second.
	require(c.Lease >= time.Second, "IDEMPOTENCY_LEASE", "1s or more")
	positive := "more than 0s"
	require(c.PSPTimeout > 0, "PSP_TIMEOUT", positive)
	require(c.PaymentTTL > 0, "IDEMPOTENCY_PAYMENT_TTL", positive)
	// A kept answer stops older copies of other requests with the key, so it outlives them.
	oldest := checkout.MaxRequestAge
	require(c.OrderTTL >= oldest, "IDEMPOTENCY_ORDER_TTL", oldest.String()+" or more")
	require(c.TombstoneTTL >= max(c.PaymentTTL, oldest), "IDEMPOTENCY_TOMBSTONE_TTL", "IDEMPOTENCY_PAYMENT_TTL, and "+oldest.String()+", or more")
	require(c.PaymentDeadline > 0, "PAYMENT_DEADLINE", positive)
	require(c.OrderDeadline > 0, "ORDER_DEADLINE", positive)
	require(c.Store == StoreRedis || c.Store == StorePostgres, "IDEMPOTENCY_STORE", "redis or postgres")
	require(c.UnpaidOrderTTL > 0, "UNPAID_ORDER_TTL", positive)
	require(c.ExpiryInterval > 0, "EXPIRY_INTERVAL", positive)
	require(c.ReconcileGrace > 0, "RECONCILE_GRACE", positive)
	require(c.ReconcileInterval > 0, "RECONCILE_INTERVAL", positive)
	require(c.SettleDeadline > 0, "PAYMENT_SETTLE_DEADLINE", positive)
	require(c.PurgeInterval > 0, "PURGE_INTERVAL", positive)
	require(c.OutboxRetention > 0, "OUTBOX_RETENTION", positive)
	require(c.StartupDeadline > 0, "STARTUP_DEADLINE", positive)
	require(c.ShutdownNotice >= 0, "SHUTDOWN_NOTICE", "0s or more")
	require(c.ShutdownDeadline > 0, "SHUTDOWN_DEADLINE", positive)
	// The values of these are not repeated: they contain passwords.
	require(c.DatabaseURL == "" || isURL(c.DatabaseURL, "postgres", "postgresql"), "DATABASE_URL", "postgres://user:password@host:port/name")
	require(c.Provider == ProviderSimulator || c.Provider == ProviderStripe, "PSP", "simulator or stripe")
	require(c.StripeKey == "" || stripe.IsKey(c.StripeKey), "STRIPE_SECRET_KEY", "sk_live_…, rk_live_…, sk_test_… or rk_test_…; publishable keys cannot charge")
	require(c.StripeWebhookSecret == "" || strings.HasPrefix(c.StripeWebhookSecret, "whsec_"), "STRIPE_WEBHOOK_SECRET", "the signing secret of an endpoint, whsec_…")
	require(c.PSPURL == "" || isURL(c.PSPURL, "http", "https"), "PSP_URL", "http://host:port")
	if c.RedisURL != "" {
		if _, err := redisstore.Options(c.RedisURL); err != nil { // which doesn't repeat it either
			errs = append(errs, fmt.Errorf("REDIS_URL: %w", err))
		}
	}
	if _, err := c.mailServer(); err != nil {
		errs = append(errs, err)
	}
	require(c.OTLPEndpoint == "" || isURL(c.OTLPEndpoint, "http", "https"), "OTEL_EXPORTER_OTLP_ENDPOINT", "http://host:port")
	require(c.OTLPTracesEndpoint == "" || isURL(c.OTLPTracesEndpoint, "http", "https"), "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
		"http://host:port/v1/traces")
	require(c.OTLPProtocol == "http/protobuf", "OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf")
	return errors.Join(errs...)
}

// mailServer is the one that sends confirmations; nil if none does.
func (c Config) mailServer() (*mailer.Server, error) {
	if c.MailURL == "" {
		return nil, nil
	}
	return mailer.NewServer(c.MailURL, c.MailFrom)
}

// tracesURL is where traces go, or "" (OpenTelemetry Protocol Exporter, "Endpoint URLs for
// OTLP/HTTP").
func (c Config) tracesURL() string {
	switch {
	case c.TelemetryDisabled:
		return ""
	case c.OTLPTracesEndpoint != "" || c.OTLPEndpoint == "":
		return c.OTLPTracesEndpoint
	}
	return strings.TrimSuffix(c.OTLPEndpoint, "/") + "/v1/traces"
}

// demoKey is the API key of the demo account, which exists in development only.
func (c Config) demoKey() string {
	if c.Environment != Development {
		return ""
	}
	return postgres.DemoKey
}

// servedBy is what clients learn of a replica: in production nothing.
func (c Config) servedBy() string {
	if c.Environment == Production {
		return ""
	}
	return c.Replica
}

// RequireDatabase fails unless the database's URL is set, which migrate and seed need.
func (c Config) RequireDatabase() error { return requireSet("DATABASE_URL", c.DatabaseURL) }

// RequireServe fails unless everything is set that serve needs.
func (c Config) RequireServe() error {
	errs := []error{c.RequireDatabase()}
	if c.Provider == ProviderStripe {
		errs = append(errs, requireSet("STRIPE_SECRET_KEY", c.StripeKey), c.checkStripeMode())
	} else {
		errs = append(errs, requireSet("PSP_URL", c.PSPURL))
	}
	if c.Store != StorePostgres {
		errs = append(errs, requireSet("REDIS_URL", c.RedisURL))
	}
	return errors.Join(errs...)
}

func requireSet(variable, value string) error {
	if value == "" {
		return fmt.Errorf("configuration: %s must be set", variable)
	}
	return nil
}

func isAddr(s string) bool {
	_, _, err := net.SplitHostPort(s)
	return err == nil
}

func isURL(s string, schemes ...string) bool {
	u, err := url.Parse(s)
	return err == nil && u.Host != "" && slices.Contains(schemes, u.Scheme)
}
