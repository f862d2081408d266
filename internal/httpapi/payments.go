package httpapi

import (
	"context"

	"github.com/oncepay/oncepay/api"
	"github.com/oncepay/oncepay/internal/checkout"
)

func wirePayment(p checkout.Payment) api.Payment {
	out := api.Payment{ID: p.ID, OrderID: p.OrderID, Amount: wireMoney(p.Amount), Refunded: wireBalance(p.Refunded),
		Status: api.PaymentStatus(p.Status), DeclineCode: optional(p.DeclineCode), ProviderChargeID: optional(p.ProviderID),
		CreatedAt: instant(p.CreatedAt), UpdatedAt: instant(p.UpdatedAt)}
	out.Method.Type = api.MethodType(p.Method)
	return out
}

func wireRefund(r checkout.Refund) api.Refund {
	return api.Refund{ID: r.ID, PaymentID: r.PaymentID, OrderID: r.OrderID, Amount: wireMoney(r.Amount),
		Status: api.PaymentStatus(r.Status), CreatedAt: instant(r.CreatedAt), UpdatedAt: instant(r.UpdatedAt)}
}

func renderPayment(ctx context.Context) render[checkout.Payment] {
	return created(ctx, wirePayment, func(p checkout.Payment) string { return at("payments", p.ID) })
}

func renderRefund(ctx context.Context) render[checkout.Refund] {
	return partOf(ctx, wireRefund, func(r checkout.Refund) string { return at("payments", r.PaymentID) })
}

// EncodeSettled makes the answer to a payment or a refund that a provider event or the reconciler
// settles, as its handler would have made it. A final error contains the ID of the request that ctx
// belongs to.
func EncodeSettled(ctx context.Context) checkout.Encode {
	payment, refund := renderPayment(ctx), renderRefund(ctx)
	return func(value any, final *checkout.Error) any {
		if refunded, ok := value.(checkout.Refund); ok {
			return refund(refunded, final)
		}
		return payment.encode(value, final)
	}
}

// CreatePayment implements POST /orders/{order_id}/payments.
func (h handlers) CreatePayment(ctx context.Context, r api.CreatePaymentRequestObject) (api.CreatePaymentResponseObject, error) {
	wanted := checkout.NewPayment{OrderID: r.OrderID, Method: checkout.Method(r.Body.Method.Type), Token: valueOf(r.Body.Method.Token)}
	kept, err := h.service.PayOrder(ctx, h.money(callOf(ctx, operationPay, renderPayment(ctx))), wanted)
	return answered(ctx, kept, err)
}

// GetPayment implements GET /payments/{payment_id}.
func (h handlers) GetPayment(ctx context.Context, r api.GetPaymentRequestObject) (api.GetPaymentResponseObject, error) {
	payment, err := h.service.Payment(ctx, accountOf(ctx), r.PaymentID)
	return api.GetPayment200JSONResponse(wirePayment(payment)), err
}

// ListPayments implements GET /orders/{order_id}/payments.
func (h handlers) ListPayments(ctx context.Context, r api.ListPaymentsRequestObject) (api.ListPaymentsResponseObject, error) {
	limit := limitOf(r.Params.Limit)
	before, err := beforeID(paymentCursor, r.Params.Cursor)
	if err != nil {
		return nil, err
	}
	payments, err := h.service.Payments(ctx, accountOf(ctx), r.OrderID, checkout.Page{Before: before, Limit: limit + 1})
	if err != nil {
		return nil, err
	}
	payments, next := page(payments, limit, func(last checkout.Payment) string { return makeCursor(paymentCursor, last.ID.String()) })
	return api.ListPayments200JSONResponse{Data: mapped(payments, wirePayment), NextCursor: next}, nil
}

// ListRefunds implements GET /payments/{payment_id}/refunds.
func (h handlers) ListRefunds(ctx context.Context, r api.ListRefundsRequestObject) (api.ListRefundsResponseObject, error) {
	limit := limitOf(r.Params.Limit)
	before, err := beforeID(refundCursor, r.Params.Cursor)
	if err != nil {
		return nil, err
	}
	refunds, err := h.service.Refunds(ctx, accountOf(ctx), r.PaymentID, checkout.Page{Before: before, Limit: limit + 1})
	if err != nil {
		return nil, err
	}
	refunds, next := page(refunds, limit, func(last checkout.Refund) string { return makeCursor(refundCursor, last.ID.String()) })
	return api.ListRefunds200JSONResponse{Data: mapped(refunds, wireRefund), NextCursor: next}, nil
}

// CreateRefund implements POST /payments/{payment_id}/refunds.
func (h handlers) CreateRefund(ctx context.Context, r api.CreateRefundRequestObject) (api.CreateRefundResponseObject, error) {
	wanted := checkout.NewRefund{PaymentID: r.PaymentID}
	if r.Body.Amount != nil {
		amount := moneyOf(*r.Body.Amount)
		wanted.Amount = &amount
	}
	kept, err := h.service.Refund(ctx, h.money(callOf(ctx, "refund", renderRefund(ctx))), wanted)
	return answered(ctx, kept, err)
}
