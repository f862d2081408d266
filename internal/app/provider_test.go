package app

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestConfig_OfStripe(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		environment, key, refused string
	}{
		"no key":                 {Development, "", "STRIPE_SECRET_KEY must be set"},
		"test":                   {Development, "sk_test_1", ""},
		"restricted":             {Development, "rk_test_1", ""},
		"live in development":    {Development, "sk_live_1", "of live mode"},
		"test in production":     {Production, "sk_test_1", "of test mode"},
		"restricted, production": {Production, "rk_live_1", ""},
	} {
		cfg := Config{DatabaseURL: "postgres://localhost/a", RedisURL: "redis://localhost", Provider: ProviderStripe,
			Environment: c.environment, StripeKey: c.key}
		if c.refused == "" {
			require.NoError(t, cfg.RequireServe(), name)
		} else {
			require.ErrorContains(t, cfg.RequireServe(), c.refused, name)
		}
	}
}

// A key is a secret: no message repeats one that has the wrong form.
func TestConfig_OfStripeRefusesOtherKeys(t *testing.T) {
	t.Parallel()
	for _, key := range []string{"pk_live_secret", "sk_secret", "rk_other_secret", "whsec_secret"} {
		_, err := ParseConfig([]string{"STRIPE_SECRET_KEY=" + key, "PSP=stripe"})
		require.ErrorContains(t, err, "STRIPE_SECRET_KEY must be", key)
		require.NotContains(t, err.Error(), key)
	}
	_, err := ParseConfig([]string{"STRIPE_WEBHOOK_SECRET=sk_test_secret"})
	require.ErrorContains(t, err, "STRIPE_WEBHOOK_SECRET must be the signing secret of an endpoint")
	require.NotContains(t, err.Error(), "sk_test_secret")
	_, err = ParseConfig([]string{"PSP=paypal"})
	require.ErrorContains(t, err, "PSP must be simulator or stripe")
}
