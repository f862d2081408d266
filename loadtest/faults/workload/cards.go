package workload

import (
	"context"
	"fmt"

	"github.com/oncepay/oncepay/loadtest/books"
)

// testsCards is the share of purchases in which somebody tries out cards, about as many as an order
// takes.
const testsCards = 0.02

// testCards has cards of an order declined, one after the other. It returns the next one, whose
// charge has to be looked up among those.
func (a *action) testCards(ctx context.Context, account, order string) (next map[string]any) {
	for i := range books.MaxDeclines - 3 + a.random.IntN(6) {
		r := a.request(account, "payment", "/orders/"+order+"/payments", map[string]any{"method": card("tok_declined")})
		r.Key += fmt.Sprintf("-declined-%d", i)
		a.do(ctx, r)
	}
	return card("tok_charged_revoked")
}

func card(token string) map[string]any { return map[string]any{"type": "card", "token": token} }
