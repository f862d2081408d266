package checkout

import "context"

// scripted is a provider that has its answers from a test, and remembers what it was asked.
type scripted struct {
	asked, listed GatewayResult
	calls         string
	charge        ChargeRequest
	refund        RefundRequest
	unsupported   bool // every amount
}

func (g *scripted) answer(call string, result GatewayResult) GatewayResult {
	if g.calls != "" {
		call = ", " + call
	}
	g.calls += call
	return result
}

func (g *scripted) Supports(Money) bool { return !g.unsupported }

// noOperations is a store of a service that reads and writes nothing.
type noOperations struct{ Store }

func (noOperations) CardPayments() Operations[NewPayment, Payment] { return nil }

func (noOperations) CardRefunds() Operations[NewRefund, Refund] { return nil }

func (g *scripted) Charge(_ context.Context, r ChargeRequest) GatewayResult {
	g.charge = r
	return g.answer("ask", g.asked)
}

func (g *scripted) FindCharge(_ context.Context, r ChargeRequest) GatewayResult {
	g.charge = r
	return g.answer("look up", g.listed)
}

func (g *scripted) Refund(_ context.Context, r RefundRequest) GatewayResult {
	g.refund = r
	return g.answer("ask", g.asked)
}

func (g *scripted) FindRefund(_ context.Context, r RefundRequest) GatewayResult {
	g.refund = r
	return g.answer("look up", g.listed)
}
