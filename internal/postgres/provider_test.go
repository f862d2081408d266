package postgres

import (
	"context"
	"errors"
	"sync"

	"github.com/oncepay/oncepay/internal/checkout"
)

// provider is a payment provider. It moves money once per idempotency key, whatever it says about
// it.
type provider struct {
	mu       sync.Mutex
	moved    map[string]int64 // by idempotency key
	calls    int
	silent   int    // so many calls from now on get no answer, though the money is moved
	declines string // with this code, if it is not empty
	answers  func(call int, answer checkout.GatewayResult) checkout.GatewayResult
}

var _ checkout.Gateway = (*provider)(nil)

// Supports reports that every amount is taken.
func (p *provider) Supports(checkout.Money) bool { return true }

// Charge takes money.
func (p *provider) Charge(_ context.Context, r checkout.ChargeRequest) checkout.GatewayResult {
	return p.move(r.IdempotencyKey, r.Amount.Amount)
}

// Refund gives it back.
func (p *provider) Refund(_ context.Context, r checkout.RefundRequest) checkout.GatewayResult {
	return p.move(r.IdempotencyKey, -r.Amount.Amount)
}

// FindCharge says whether the money was taken.
func (p *provider) FindCharge(_ context.Context, r checkout.ChargeRequest) checkout.GatewayResult {
	return p.find(r.IdempotencyKey)
}

// FindRefund says whether it was given back.
func (p *provider) FindRefund(_ context.Context, r checkout.RefundRequest) checkout.GatewayResult {
	return p.find(r.IdempotencyKey)
}

func (p *provider) find(key string) checkout.GatewayResult {
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, ok := p.moved[key]; ok {
		return checkout.GatewayResult{Outcome: checkout.OutcomeApproved, ProviderID: "at-" + key}
	}
	return checkout.GatewayResult{Outcome: checkout.OutcomeAbsent, DeclineCode: "not_charged"}
}

func (p *provider) move(key string, amount int64) checkout.GatewayResult {
	call, answer := p.record(key, amount)
	if p.answers != nil { // not locked: it may take its time
		return p.answers(call, answer)
	}
	return answer
}

func (p *provider) record(key string, amount int64) (call int, answer checkout.GatewayResult) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.calls++
	if p.moved == nil {
		p.moved = make(map[string]int64)
	}
	if p.declines == "" {
		p.moved[key] = amount
	}
	switch {
	case p.silent > 0:
		p.silent--
		return p.calls, noAnswer
	case p.declines != "":
		return p.calls, checkout.GatewayResult{Outcome: checkout.OutcomeDeclined, DeclineCode: p.declines}
	default:
		return p.calls, checkout.GatewayResult{Outcome: checkout.OutcomeApproved, ProviderID: "at-" + key}
	}
}

var noAnswer = checkout.GatewayResult{Outcome: checkout.OutcomeUnknown, Cause: errors.New("no answer")}
