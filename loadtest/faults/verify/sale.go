package verify

import (
	"slices"
	"strings"
	"time"

	"github.com/oncepay/oncepay/loadtest/books"
	"github.com/oncepay/oncepay/loadtest/faults/journal"
)

// saleTime is shorter than an unpaid order holds its unit: all units that are sold in this time
// after the first one are different ones.
const saleTime = 10 * time.Second

// soldOnce finds sales that sold more units than there were, and those that told a buyer "out of
// stock" but have not sold all units in the end.
func soldOnce(attempts []journal.Attempt, b books.Books) []books.Violation {
	sold := map[string][]time.Time{} // by SKU
	for _, o := range b.Orders {
		for sku := range o.Items {
			if strings.HasPrefix(sku, journal.SalePrefix) {
				sold[sku] = append(sold[sku], o.Created)
			}
		}
	}
	var found []books.Violation
	for sku, times := range sold {
		if n := within(times, saleTime); n > journal.SaleUnits {
			found = append(found, books.Broken(SoldOnce, "%d units of %s were sold, and there were %d", n, sku, journal.SaleUnits))
		}
	}
	for _, a := range attempts {
		if a.Purpose != journal.Sale || a.Code != "out_of_stock" {
			continue
		}
		if n := len(sold[a.Key[:strings.LastIndex(a.Key, "-")]]); n < journal.SaleUnits {
			found = append(found, books.Broken(SoldOnce, "out of stock, and only %d of %d units were ever sold", n, journal.SaleUnits).
				Of(books.KeyID{Account: a.Account, Key: a.Key}))
		}
	}
	return found
}

// within counts the times that are at most this much later than the first one.
func within(times []time.Time, most time.Duration) (n int) {
	first := slices.MinFunc(times, time.Time.Compare)
	for _, t := range times {
		if t.Sub(first) <= most {
			n++
		}
	}
	return n
}
