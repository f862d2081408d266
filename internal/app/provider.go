package app

import (
	"errors"

	"github.com/oncepay/oncepay/internal/checkout"
	"github.com/oncepay/oncepay/internal/httpapi"
	"github.com/oncepay/oncepay/internal/psp"
	"github.com/oncepay/oncepay/internal/psp/stripe"
)

// Values of Config.Provider.
const (
	ProviderSimulator = "simulator"
	ProviderStripe    = "stripe"
)

// gateway is one with connections to close.
type gateway interface {
	checkout.Gateway
	Close()
}

func (a *App) openGateway() gateway {
	if a.cfg.Provider == ProviderStripe {
		return stripe.NewGateway(a.cfg.StripeKey, a.cfg.PSPURL, a.cfg.PSPTimeout, a.tracing.calls)
	}
	return psp.NewGateway(a.cfg.PSPURL, a.cfg.PSPTimeout, psp.WithTransport(a.tracing.calls))
}

// stripeEvents reads the events of Stripe; nil where it is not the provider.
func (c Config) stripeEvents() httpapi.Events {
	if c.Provider != ProviderStripe {
		return nil
	}
	return stripe.Events{Secret: c.StripeWebhookSecret, Live: stripe.IsLive(c.StripeKey)}
}

// checkStripeMode refuses a key that moves money outside of production, and one that moves none
// inside.
func (c Config) checkStripeMode() error {
	live, production := stripe.IsLive(c.StripeKey), c.Environment == Production
	switch {
	case c.StripeKey == "" || live == production:
		return nil
	case live:
		return errors.New("configuration: STRIPE_SECRET_KEY is of live mode, and ENVIRONMENT is not production: payments of a test would move money")
	}
	return errors.New("configuration: STRIPE_SECRET_KEY is of test mode, and ENVIRONMENT is production: goods would be sent for payments that move no money")
}
