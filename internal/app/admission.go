package app

import (
	"context"

	"github.com/oncepay/oncepay/internal/admission"
	"github.com/oncepay/oncepay/internal/checkout"
)

const (
	// backgroundConns are the connections to PostgreSQL that requests leave to the workers, the
	// checks of /readyz and the look-ups of API keys. A request uses a connection only while it
	// holds a slot, so under overload those nearly never wait. The exceptions are requests that
	// come back from the provider, and those that decision 0019 lets in without a slot.
	backgroundConns = 4

	// lookupConns are those of them that look-ups of records may take if PostgreSQL has the
	// records.
	lookupConns = backgroundConns / 2
)

// recordLookups is how many records are looked up at a time for requests without a slot; zero: any
// number, as they use no connection to PostgreSQL.
func (a *App) recordLookups() int64 {
	if a.cfg.Store == StorePostgres {
		return lookupConns
	}
	return 0
}

// parkingGateway gives the slot of a request back while the provider is asked, which may take long
// and costs the replica nothing.
type parkingGateway struct{ gateway checkout.Gateway }

var _ checkout.Gateway = parkingGateway{}

func (g parkingGateway) Supports(amount checkout.Money) bool { return g.gateway.Supports(amount) }

func (g parkingGateway) Charge(ctx context.Context, r checkout.ChargeRequest) checkout.GatewayResult {
	defer admission.Park(ctx)()
	return g.gateway.Charge(ctx, r)
}

func (g parkingGateway) FindCharge(ctx context.Context, r checkout.ChargeRequest) checkout.GatewayResult {
	defer admission.Park(ctx)()
	return g.gateway.FindCharge(ctx, r)
}

func (g parkingGateway) Refund(ctx context.Context, r checkout.RefundRequest) checkout.GatewayResult {
	defer admission.Park(ctx)()
	return g.gateway.Refund(ctx, r)
}

func (g parkingGateway) FindRefund(ctx context.Context, r checkout.RefundRequest) checkout.GatewayResult {
	defer admission.Park(ctx)()
	return g.gateway.FindRefund(ctx, r)
}
