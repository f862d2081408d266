package workload

import (
	"context"
	"fmt"

	"github.com/oncepay/oncepay/loadtest/books"
)

// testsCards is the share of purchases in which somebody tries out cards, about as many as an order
// takes.
const testsCards = 0.02

// testCards has cards of an order declined, one after the other.
func (a *action) testCards(ctx context.Context, account, order string) {
	for i := range books.MaxDeclines - 3 + a.random.IntN(6) {
		r := a.request(account, "payment", "/orders/"+order+"/payments", card("tok_declined"))
		r.Key += fmt.Sprintf("-declined-%d", i)
		a.do(ctx, r)
	}
}

func card(token string) map[string]any {
	return map[string]any{"method": map[string]any{"type": "card", "token": token}}
}
