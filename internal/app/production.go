package app

import (
	"context"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"math"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/redis/go-redis/v9"

	"github.com/oncepay/oncepay/idempotency/redisstore"
	"github.com/oncepay/oncepay/internal/postgres"
)

const (
	// published are the bytes of the local deployment's webhook secret. They are in the source, so
	// anybody can sign with them.
	published = "for development only, known to all"

	// publishedRecordSecret is the one that signs records there.
	publishedRecordSecret = "for development only, known to everybody"

	// minSecretBytes is the least length of a webhook secret (Standard Webhooks 1.0.0, "Signature
	// scheme": between 24 and 64 bytes).
	minSecretBytes = 24

	minDifferentBytes = 6

	// maxAuthCacheTTL is the longest time for which a revoked API key may work.
	maxAuthCacheTTL = time.Minute
)

// checkProduction refuses settings that make a replica unsafe: in production nobody looks at a
// warning. What stays on this machine, by loopback or a Unix socket, needs no TLS. The error names
// every setting, and no value.
func (c Config) checkProduction() error {
	if c.Environment != Production {
		return nil
	}
	return inProduction(errors.Join(checkSecret("PSP_WEBHOOK_SECRET", c.WebhookSecret), checkSecret("PSP_WEBHOOK_SECRET_PREVIOUS", c.WebhookSecretPrevious),
		c.checkStripeSecret(), c.checkRecordSecrets(), c.checkLogSecret(), c.checkDatabase(), c.checkRedis(), c.checkProvider(), c.checkMailServer(),
		c.checkProxies(), c.checkAuthCache()))
}

func inProduction(err error) error {
	if err != nil {
		return fmt.Errorf("configuration for ENVIRONMENT=%s: %w", Production, err)
	}
	return nil
}

// privateNetworks are not reached from the internet (RFC 1918, 4193, 6598; loopback, link-local).
var privateNetworks = []netip.Prefix{
	netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("172.16.0.0/12"), netip.MustParsePrefix("192.168.0.0/16"), netip.MustParsePrefix("100.64.0.0/10"),
	netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("169.254.0.0/16"), netip.MustParsePrefix("fc00::/7"), netip.MustParsePrefix("fe80::/10"), netip.MustParsePrefix("::1/128"),
}

// checkProxies: who is in these networks chooses an address, and the time of a request. It adds up
// the public ones, because two halves are everybody, too. The networks of a provider of proxies are
// far below the bounds.
func (c Config) checkProxies() error {
	var ipv4, ipv6 float64 // shares of all addresses
	counted := slices.Clone(privateNetworks)
	for _, network := range slices.SortedFunc(slices.Values(c.TrustedProxies), func(a, b netip.Prefix) int { return a.Bits() - b.Bits() }) {
		if slices.ContainsFunc(counted, func(n netip.Prefix) bool { return n.Bits() <= network.Bits() && n.Contains(network.Addr()) }) {
			continue
		}
		counted = append(counted, network)
		if network.Addr().Is4() {
			ipv4 += math.Ldexp(1, -network.Bits())
		} else {
			ipv6 += math.Ldexp(1, -network.Bits())
		}
	}
	if ipv4 > 1.0/(1<<8) || ipv6 > 1.0/(1<<16) {
		return errors.New("TRUSTED_PROXIES has more public addresses than an IPv4 /8 or an IPv6 /16, so clients can be in it: name the networks of the proxies")
	}
	return nil
}

// checkRecordSecrets: without a secret, who may write to Redis chooses what a replay answers.
func (c Config) checkRecordSecrets() error {
	if c.Store != StoreRedis {
		return nil
	}
	if len(c.RecordSecrets) == 0 {
		return errors.New("IDEMPOTENCY_RECORD_SECRETS is not set: records in Redis could be forged")
	}
	for _, secret := range c.RecordSecrets {
		switch {
		case secret == publishedRecordSecret:
			return errors.New("IDEMPOTENCY_RECORD_SECRETS has the published one of the local deployment")
		case len(secret) < minSecretBytes:
			return fmt.Errorf("IDEMPOTENCY_RECORD_SECRETS: each needs %d bytes or more", minSecretBytes)
		case !isRandom(secret):
			return errors.New("IDEMPOTENCY_RECORD_SECRETS has a secret of few different bytes: each must be random")
		}
	}
	return nil
}

// checkLogSecret: who has a log can try all short secrets, and then the likely keys.
func (c Config) checkLogSecret() error {
	if c.LogSecret == "" || len(c.LogSecret) >= minSecretBytes && isRandom(c.LogSecret) {
		return nil
	}
	return fmt.Errorf("LOG_SECRET needs %d random bytes or more, such as openssl rand -hex 32 prints; without it, keys are not logged", minSecretBytes)
}

func (c Config) checkAuthCache() error {
	if c.AuthCacheTTL <= maxAuthCacheTTL {
		return nil
	}
	return fmt.Errorf("AUTH_CACHE_TTL is %s, for which a revoked API key still works: set it to %s or less", c.AuthCacheTTL, maxAuthCacheTTL)
}

func checkSecret(variable, value string) error {
	if value == "" {
		return nil // nothing is signed with it
	}
	secret, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(value, "whsec_"))
	switch {
	case err != nil:
		return fmt.Errorf("%s must be whsec_ and base64", variable)
	case string(secret) == published:
		return fmt.Errorf("%s is the published one of the local deployment: whoever reads the source can forge payments", variable)
	case len(secret) < minSecretBytes:
		return fmt.Errorf("%s has %d bytes, and needs %d or more", variable, len(secret), minSecretBytes)
	case !isRandom(string(secret)):
		return fmt.Errorf("%s has few different bytes: it must be random", variable)
	}
	return nil
}

// checkStripeSecret: Stripe signs with the text as it is. It may look like base64 without being it.
func (c Config) checkStripeSecret() error {
	secret := strings.TrimPrefix(c.StripeWebhookSecret, "whsec_")
	if c.StripeWebhookSecret == "" || len(secret) >= minSecretBytes && isRandom(secret) && secret != base64.StdEncoding.EncodeToString([]byte(published)) {
		return nil
	}
	return errors.New("STRIPE_WEBHOOK_SECRET is none of Stripe's: copy the endpoint's signing secret from its dashboard")
}

// isRandom refuses secrets such as 30 spaces. Of 24 random hexadecimal digits fewer than
// minDifferentBytes differ in three of a billion cases.
func isRandom(secret string) bool {
	different := map[byte]bool{}
	for i := range len(secret) {
		different[secret[i]] = true
	}
	return len(different) >= minDifferentBytes
}

// checkDatabase also looks at the connections that are tried second: sslmode=prefer has one without
// TLS.
func (c Config) checkDatabase() error {
	parsed, err := pgx.ParseConfig(c.DatabaseURL)
	if err != nil {
		return errors.New("DATABASE_URL is no URL of PostgreSQL") // the cause may repeat the password
	}
	ok := isLocal(parsed.Host) || verifies(parsed.TLSConfig)
	for _, next := range parsed.Fallbacks {
		ok = ok && (isLocal(next.Host) || verifies(next.TLSConfig))
	}
	if !ok {
		return errors.New("DATABASE_URL needs sslmode=verify-full, or a host on this machine")
	}
	return nil
}

func (c Config) checkRedis() error {
	if c.RedisURL == "" {
		return nil
	}
	options, err := redisstore.Options(c.RedisURL)
	if err != nil {
		return fmt.Errorf("REDIS_URL: %w", err)
	}
	if allLocal(options) {
		return nil
	}
	var errs []error
	if !verifies(options.TLSConfig) {
		errs = append(errs, errors.New("REDIS_URL needs TLS with verification (rediss, without skip_verify), or a host on this machine"))
	}
	if options.Password == "" && (options.TLSConfig == nil || len(options.TLSConfig.Certificates) == 0) {
		errs = append(errs, errors.New("REDIS_URL needs a password or a client certificate (cert_file, key_file), or a host on this machine"))
	}
	return errors.Join(errs...)
}

func (c Config) checkProvider() error {
	if c.Provider == ProviderSimulator {
		return errors.New("PSP=simulator moves no money, and asks for no credentials: set PSP=stripe")
	}
	if c.PSPURL == "" {
		return nil // https://api.stripe.com
	}
	provider, err := url.Parse(c.PSPURL)
	if err != nil || provider.Scheme != "https" && !isLocal(provider.Hostname()) {
		return errors.New("PSP_URL needs https, or a host on this machine")
	}
	return nil
}

// checkMailServer: mails have names and addresses of customers.
func (c Config) checkMailServer() error {
	server, err := c.mailServer()
	if err != nil || server == nil || server.RequiresTLS() || isLocal(server.Host()) {
		return err
	}
	return errors.New("MAIL_URL needs smtp+starttls or smtps, or a host on this machine")
}

// allLocal: Sentinels and nodes of a cluster name further servers, which may be anywhere.
func allLocal(options *redis.UniversalOptions) bool {
	for _, addr := range options.Addrs {
		host, _, err := net.SplitHostPort(addr)
		if err != nil || !isLocal(host) {
			return false
		}
	}
	return options.MasterName == "" && !options.IsClusterMode
}

// isLocal says whether a host is this machine: loopback, or the folder of a Unix socket.
func isLocal(host string) bool {
	if host == "localhost" || strings.HasPrefix(host, "/") || strings.HasPrefix(host, "@") {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.IsLoopback()
}

// verifies says whether a connection checks the server's certificate, also its name: PostgreSQL's
// verify-ca does not, and whoever has any certificate of that authority would get the password.
func verifies(config *tls.Config) bool { return config != nil && !config.InsecureSkipVerify }

// refusePowers: the rights of the role that serves protect the ledger and the schema from who gets
// into a replica.
func (a *App) refusePowers(ctx context.Context) error {
	if a.cfg.Environment != Production {
		return nil
	}
	powers, err := postgres.Powers(ctx, a.servers.pool)
	if err != nil {
		return err
	}
	if powers != "" {
		return fmt.Errorf("ENVIRONMENT=%s, and the role of DATABASE_URL %s: set DATABASE_SERVICE_ROLE for oncepay migrate up, and serve as that role", Production, powers)
	}
	return nil
}

// refuseDemoKeys: their text is in the source, and whoever has read it could act as these accounts.
func (a *App) refuseDemoKeys(ctx context.Context) error {
	if a.cfg.Environment != Production {
		return nil
	}
	valid, err := postgres.CountDemoKeys(ctx, a.servers.pool)
	if err != nil {
		return err
	}
	if valid > 0 {
		return fmt.Errorf("ENVIRONMENT=%s, and %d API keys of the demo data are not revoked: set revoked_at in api_keys",
			Production, valid)
	}
	return nil
}
