package postgres

import (
	"context"
	"time"

	"github.com/google/uuid"

	"github.com/oncepay/oncepay/internal/checkout"
)

// BeginCardPayment is phase one of a card payment. See [checkout.Store].
func (s *Store) BeginCardPayment(ctx context.Context, call checkout.Call, wanted checkout.NewPayment, render checkout.Render[checkout.Payment]) (checkout.Begun[checkout.Payment], error) {
	return cardPayments(s).Begin(ctx, call, wanted, render)
}

// SettleCardPayment is phase three of a card payment. See [checkout.Store].
func (s *Store) SettleCardPayment(ctx context.Context, call checkout.Call, begun checkout.Payment, result checkout.GatewayResult, render checkout.Render[checkout.Payment]) (checkout.Answer, error) {
	return cardPayments(s).Settle(ctx, call, begun, result, render)
}

// PutOffPayment makes a payment due later. See [checkout.ReconcileStore].
func (s *Store) PutOffPayment(ctx context.Context, account uuid.UUID, payment checkout.Payment, wait time.Duration) error {
	return cardPayments(s).PutOff(ctx, account, payment, wait)
}

// TakePayments takes the next attempts of payments. See [checkout.ReconcileStore].
func (s *Store) TakePayments(ctx context.Context, grace time.Duration, limit int) ([]checkout.Taken[checkout.Payment], error) {
	return cardPayments(s).Take(ctx, grace, limit)
}

// SettlePaymentByProviderEvent settles a payment. See [checkout.ProviderEventStore].
func (s *Store) SettlePaymentByProviderEvent(ctx context.Context, id uuid.UUID, e checkout.ProviderEvent, render checkout.Render[checkout.Payment]) (checkout.Verdict, error) {
	return cardPayments(s).SettleByEvent(ctx, id, e, render)
}

// BeginCardRefund is phase one of a card refund. See [checkout.Store].
func (s *Store) BeginCardRefund(ctx context.Context, call checkout.Call, wanted checkout.NewRefund, render checkout.Render[checkout.Refund]) (checkout.Begun[checkout.Refund], error) {
	return cardRefunds(s).Begin(ctx, call, wanted, render)
}

// SettleCardRefund is phase three of a card refund. See [checkout.Store].
func (s *Store) SettleCardRefund(ctx context.Context, call checkout.Call, begun checkout.Refund, result checkout.GatewayResult, render checkout.Render[checkout.Refund]) (checkout.Answer, error) {
	return cardRefunds(s).Settle(ctx, call, begun, result, render)
}

// PutOffRefund makes a refund due later. See [checkout.ReconcileStore].
func (s *Store) PutOffRefund(ctx context.Context, account uuid.UUID, refund checkout.Refund, wait time.Duration) error {
	return cardRefunds(s).PutOff(ctx, account, refund, wait)
}

// TakeRefunds takes the next attempts of refunds. See [checkout.ReconcileStore].
func (s *Store) TakeRefunds(ctx context.Context, grace time.Duration, limit int) ([]checkout.Taken[checkout.Refund], error) {
	return cardRefunds(s).Take(ctx, grace, limit)
}

// SettleRefundByProviderEvent settles a refund. See [checkout.ProviderEventStore].
func (s *Store) SettleRefundByProviderEvent(ctx context.Context, id uuid.UUID, e checkout.ProviderEvent, render checkout.Render[checkout.Refund]) (checkout.Verdict, error) {
	return cardRefunds(s).SettleByEvent(ctx, id, e, render)
}
