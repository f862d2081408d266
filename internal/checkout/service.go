package checkout

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/bojanz/currency"
	"github.com/google/uuid"
)

// SettleGrace bounds phase three. It runs even if the handler's deadline has just passed: the
// provider has answered, and writing that down is cheap.
const SettleGrace = 5 * time.Second

// unknownPause is how long a client may take to retry after an unknown outcome, before the
// reconciler asks the provider. The answer's Retry-After is shorter.
const unknownPause = 2 * RetryHint

// Service runs the shop's commands: it checks what can be checked without reading anything, and
// puts the store's transactions and the provider's calls in order. It is safe for concurrent use,
// and keeps nothing but counters.
type Service struct {
	store    Store
	gateway  Gateway
	payments kind[NewPayment, Payment]
	refunds  kind[NewRefund, Refund]

	takeovers, fencesLost atomic.Int64
}

// ServiceStats counts what happened to attempts at card payments and refunds since the service was
// made.
type ServiceStats struct {
	// Takeovers are attempts that went on with what an earlier one had begun: it ended, lost its
	// lease, or did not learn the outcome.
	Takeovers int64
	// FencesLost are attempts that knew the outcome and could not settle, because a newer one was
	// running, or it was settled already.
	FencesLost int64
}

// NewService makes a service on a store and a payment gateway.
func NewService(store Store, gateway Gateway) *Service {
	return &Service{store: store, gateway: gateway, payments: cardPayments(store.CardPayments(), gateway), refunds: cardRefunds(store.CardRefunds(), gateway)}
}

// Stats reads the counters.
func (s *Service) Stats() ServiceStats {
	return ServiceStats{Takeovers: s.takeovers.Load(), FencesLost: s.fencesLost.Load()}
}

// PutProduct creates or replaces a product.
func (s *Service) PutProduct(ctx context.Context, call Call, wanted ProductWrite) (Answer, error) {
	if err := checkPositive(wanted.Price); err != nil {
		return s.Rejected(ctx, call, err)
	}
	return s.store.PutProduct(ctx, call, wanted)
}

// UpdateProduct changes a product.
func (s *Service) UpdateProduct(ctx context.Context, call Call, sku string, change ProductChange) (Answer, error) {
	if change.Price != nil {
		if err := checkPositive(*change.Price); err != nil {
			return s.Rejected(ctx, call, err)
		}
	}
	return s.store.UpdateProduct(ctx, call, sku, change)
}

// CreateCustomer makes a customer with an empty wallet. A taken e-mail address is a retryable
// conflict.
func (s *Service) CreateCustomer(ctx context.Context, call Call, wanted NewCustomer) (Answer, error) {
	if err := firstOf(checkName(wanted.Name), checkEmail(wanted.Email)); err != nil {
		return s.Rejected(ctx, call, err)
	}
	return s.store.CreateCustomer(ctx, call, wanted)
}

// UpdateCustomer changes a customer.
func (s *Service) UpdateCustomer(ctx context.Context, call Call, id uuid.UUID, change CustomerChange) (Answer, error) {
	if change.Name != nil {
		if err := checkName(*change.Name); err != nil {
			return s.Rejected(ctx, call, err)
		}
	}
	if change.Email != nil {
		if err := checkEmail(*change.Email); err != nil {
			return s.Rejected(ctx, call, err)
		}
	}
	return s.store.UpdateCustomer(ctx, call, id, change)
}

// TopUp puts money into a wallet.
func (s *Service) TopUp(ctx context.Context, call Call, wanted NewTopUp) (Answer, error) {
	if err := checkPositive(wanted.Amount); err != nil {
		return s.Rejected(ctx, call, err)
	}
	return s.store.TopUp(ctx, call, wanted)
}

// PlaceOrder reserves stock for an order, or reserves nothing.
func (s *Service) PlaceOrder(ctx context.Context, call Call, wanted NewOrder) (Answer, error) {
	if err := checkItems(wanted.Items); err != nil {
		return s.Rejected(ctx, call, err)
	}
	wanted.supports = s.supports
	return s.store.PlaceOrder(ctx, call, wanted)
}

// UpdateOrder changes the shipping address of an order or cancels it.
func (s *Service) UpdateOrder(ctx context.Context, call Call, id uuid.UUID, change OrderChange) (Answer, error) {
	return s.store.UpdateOrder(ctx, call, id, change)
}

// PayOrder pays an order in full. The call must carry a claim. A card payment has three phases, and
// a retry continues where an earlier attempt stopped: it asks the provider for the same charge
// again, under the same provider key.
func (s *Service) PayOrder(ctx context.Context, call Call, wanted NewPayment) (Answer, error) {
	if wanted.Method == MethodWallet {
		return s.store.PayFromWallet(ctx, call, wanted)
	}
	wanted.supports = s.supports
	return operate(ctx, s, s.payments, call, wanted)
}

// Refund refunds a payment or a part of it, to where it was paid from. The call must carry a claim.
func (s *Service) Refund(ctx context.Context, call Call, wanted NewRefund) (Answer, error) {
	if wanted.Amount != nil {
		if err := checkPositive(*wanted.Amount); err != nil {
			return s.Rejected(ctx, call, err)
		}
	}
	// How a payment was made never changes, so it may be read beforehand. Its 404 needs no refused
	// row, as an unknown ID stays unknown.
	payment, err := s.store.Payment(ctx, call.Account, wanted.PaymentID)
	if err != nil {
		return Answer{}, err
	}
	if payment.Method == MethodWallet {
		return s.store.RefundToWallet(ctx, call, wanted)
	}
	return operate(ctx, s, s.refunds, call, wanted)
}

// supports reports whether an amount can be paid. Prices of earlier releases may have a currency
// that is none.
func (s *Service) supports(amount Money) bool {
	return currency.IsValid(amount.Currency) && s.gateway.Supports(amount)
}

// Rejected is the answer to a request that breaks a rule by itself: the rejection, unless the
// request was executed before there was this rule.
func (s *Service) Rejected(ctx context.Context, call Call, rejection error) (Answer, error) {
	if call.Claim == nil {
		return Answer{}, rejection
	}
	key, err := s.store.Key(ctx, call.Account, call.Claim.Key)
	switch {
	case errors.Is(err, ErrKeyNotFound), err == nil && key.Fingerprint != call.Claim.Fingerprint:
		return Answer{}, rejection
	case err != nil:
		return Answer{}, err
	case key.State == KeyInProgress:
		return Answer{}, KeyInProgressSince(key.CreatedAt)
	case key.State == KeyExpired:
		return Answer{}, ExpiredKey(key.Path)
	}
	return key.Answer, nil
}

func checkItems(items []Wanted) *Error {
	if len(items) == 0 {
		return invalid("no_items", "an order needs at least one item")
	}
	seen := make(map[string]bool, len(items))
	for _, item := range items {
		if item.Quantity < 1 {
			return invalid("invalid_quantity", "quantity must be at least 1")
		}
		if seen[item.SKU] {
			return invalid("duplicate_item", "%s is listed twice; add up its quantities", item.SKU)
		}
		seen[item.SKU] = true
	}
	return nil
}

func checkPositive(m Money) *Error {
	if m.Amount < 1 {
		return invalid("invalid_amount", "amount must be at least 1")
	}
	return nil
}

func firstOf(errs ...*Error) *Error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
