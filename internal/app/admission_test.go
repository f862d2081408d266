package app

import (
	"context"
	"net/http"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/internal/admission"
	"github.com/oncepay/oncepay/internal/checkout"
)

// askedGateway says what the limiter holds while the provider is asked.
type askedGateway struct {
	checkout.Gateway
	limiter *admission.Limiter
	during  []admission.Stats
}

func (g *askedGateway) Charge(context.Context, checkout.ChargeRequest) (r checkout.GatewayResult) {
	g.during = append(g.during, g.limiter.Stats())
	return r
}

func (g *askedGateway) FindCharge(context.Context, checkout.ChargeRequest) (r checkout.GatewayResult) {
	g.during = append(g.during, g.limiter.Stats())
	return r
}

func (g *askedGateway) FindRefund(context.Context, checkout.RefundRequest) (r checkout.GatewayResult) {
	g.during = append(g.during, g.limiter.Stats())
	return r
}

func (g *askedGateway) Refund(context.Context, checkout.RefundRequest) (r checkout.GatewayResult) {
	g.during = append(g.during, g.limiter.Stats())
	return r
}

func TestAdmission_FreesTheSlotWhileTheProviderIsAsked(t *testing.T) {
	t.Parallel()
	limiter := admission.New(10)
	asked := &askedGateway{limiter: limiter}
	slot := limiter.Enter(t.Context(), admission.Money, uuid.New(), false, nil)
	ctx := admission.WithSlot(t.Context(), slot)
	parkingGateway{asked}.Charge(ctx, checkout.ChargeRequest{})
	parkingGateway{asked}.FindCharge(ctx, checkout.ChargeRequest{})
	parkingGateway{asked}.Refund(ctx, checkout.RefundRequest{})
	parkingGateway{asked}.FindRefund(ctx, checkout.RefundRequest{})
	parkingGateway{asked}.Charge(t.Context(), checkout.ChargeRequest{}) // the reconciler has no slot
	require.Len(t, asked.during, 5)
	for _, stats := range asked.during[:4] {
		require.Zero(t, stats.InUse)
		require.Equal(t, 1, stats.Waiting)
	}
	require.Equal(t, 1, limiter.Stats().InUse)
	slot.Leave()
	require.Zero(t, limiter.Stats().InUse+limiter.Stats().Waiting)
}

// TestAdmission_KeepsTheReplicaReady when every slot is taken: what is full is not broken.
func TestAdmission_KeepsTheReplicaReady(t *testing.T) {
	t.Parallel()
	r := serveSeeded(t, testConfig(t))
	unknown := func(context.Context) admission.Key { return admission.Unknown }
	account := uuid.New()
	for slot := r.limits.admission.Enter(t.Context(), admission.List, account, false, unknown); slot != nil; {
		slot = r.limits.admission.Enter(t.Context(), admission.List, account, false, unknown)
	}
	require.Equal(t, http.StatusOK, r.operations("/readyz").status)
	page := r.operations("/metrics").body
	require.Contains(t, page, `requests_turned_away_total{class="list"} 1`)
	require.Contains(t, page, "admission_slots_in_use 13")
}
