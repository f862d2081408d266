package books

func stock(b Books) (found []Violation) {
	type shelf struct{ account, sku string }
	sold := map[shelf]int64{}
	for _, o := range b.Orders {
		if o.Status == "cancelled" || o.Status == "expired" {
			continue
		}
		for sku, n := range o.Items {
			sold[shelf{o.Account, sku}] += n
		}
	}
	for _, p := range b.Products {
		if want := p.Opening - sold[shelf{p.Account, p.SKU}]; p.Stock < 0 || p.Stock != want && !p.Restocked {
			found = append(found, Broken(StockMatches, "%s of %s: want %d, is %d", p.SKU, p.Account, want, p.Stock))
		}
	}
	return found
}

// orders compares an order's status with its payment and refunds.
func orders(b Books) (found []Violation) {
	paid, refunded, of, owners := map[string]int64{}, map[string]int64{}, map[string]int{}, b.owners()
	for _, p := range b.Paid() {
		paid[p.Order] += p.Amount
		of[p.Order]++
	}
	for _, r := range b.Refunded() {
		refunded[r.Order] += r.Amount
	}
	for _, o := range b.Orders {
		fits := of[o.ID] == 1 && paid[o.ID] == o.Total
		switch o.Status {
		case "paid":
			fits = fits && refunded[o.ID] == 0
		case "partially_refunded":
			fits = fits && refunded[o.ID] > 0 && refunded[o.ID] < o.Total
		case "refunded":
			fits = fits && refunded[o.ID] == o.Total
		default:
			fits = of[o.ID] == 0
		}
		if !fits {
			found = append(found, Broken(OrdersMatch, "order %s of %d is %s: %d payments of %d, refunds of %d",
				o.ID, o.Total, o.Status, of[o.ID], paid[o.ID], refunded[o.ID]).Of(owners[o.ID]))
		}
	}
	return found
}
