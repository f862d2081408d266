package verify_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/loadtest/books"
	"github.com/oncepay/oncepay/loadtest/faults/journal"
	"github.com/oncepay/oncepay/loadtest/faults/verify"
)

// changes builds the history of one product.
type changes struct{ run }

const shelf = "shelf"

// write adds an attempt of two seconds, with this answer.
func (c *changes) write(key string, at, status int, change journal.Change) *journal.Attempt {
	a := attempt(key, at, status, "x")
	a.Return = a.Invoke + 2*time.Second
	change.Of = shelf
	a.Change = &change
	c.attempts = append(c.attempts, a)
	return &c.attempts[len(c.attempts)-1]
}

// end is what the books say at last.
func (c *changes) end(stock, version int64) {
	c.books.Products = []books.Product{{SKU: shelf, Stock: stock, Version: version, Restocked: true}}
}

func set(n int64) journal.Change { return journal.Change{Kind: journal.Set, Amount: n} }
func add(n int64) journal.Change { return journal.Change{Kind: journal.Add, Amount: n} }
func told(n int64) journal.Change {
	return journal.Change{Kind: journal.Get, Stock: &n}
}
func version(c journal.Change, n int64) journal.Change   { c.Version = n; return c }
func ifVersion(c journal.Change, n int64) journal.Change { c.IfMatch = n; return c }

// found are the violations of the rule; the other rules miss the rows of these keys.
func (c *changes) found() (found []books.Violation) {
	for _, v := range verify.All(c.attempts, c.books, time.Second) {
		if v.Rule == verify.ChangesActOnce {
			found = append(found, v)
		}
	}
	return found
}

// The search for an order would take longer than the universe here: no verdict is no proof.
func TestChanges_TakeAnUndecidedCheckForAViolation(t *testing.T) {
	t.Parallel()
	c := &changes{}
	c.write("a", 0, 201, set(0))
	for i := range 40 {
		c.write("", 3, 200, add(1<<i))
	}
	c.end(-1, 20)
	found := c.found()
	require.Len(t, found, 1)
	require.Contains(t, found[0].Detail, "Unknown")
}

func TestChanges_ActOnceInTheirTime(t *testing.T) {
	t.Parallel()
	for name, happened := range map[string]func(*changes){
		"one after the other": func(c *changes) {
			c.write("a", 0, 201, version(set(5), 1))
			c.write("b", 3, 200, version(add(-2), 2))
			c.write("", 6, 200, version(told(3), 2))
			c.end(3, 2)
		},
		"side by side": func(c *changes) {
			c.write("a", 0, 201, set(5))
			c.write("", 10, 200, set(7))
			c.write("b", 11, 201, add(-2))
			c.end(7, 3)
		},
		"no answer, and no effect": func(c *changes) { c.write("a", 0, 201, set(5)); c.write("", 3, 502, set(7)); c.end(5, 1) },
		"no answer, and an effect": func(c *changes) {
			c.write("a", 0, 201, set(5))
			c.write("", 3, 502, set(7))
			c.write("b", 9, 201, add(-2))
			c.end(5, 3)
		},
		"turned away": func(c *changes) {
			c.write("a", 0, 201, set(5))
			c.write("", 3, 503, set(7)).Code = "overloaded"
			c.end(5, 1)
		},
		"answered at the second attempt, and again": func(c *changes) {
			c.write("a", 0, 0, set(5))
			c.write("a", 9, 201, version(set(5), 1))
			c.write("b", 3, 201, add(-2))
			c.write("a", 30, 201, version(set(5), 1))
			c.end(3, 2)
		},
		"refused": func(c *changes) {
			c.write("a", 0, 201, set(1))
			c.write("b", 3, 409, add(-2)).Code = "out_of_stock"
			c.write("c", 6, 412, ifVersion(set(9), 3)).Code = "precondition_failed"
			c.write("d", 9, 409, add(2)).Code = "order_expired" // a cancellation
			c.end(1, 1)
		},
		"a sale of the last units": func(c *changes) {
			c.write("a", 0, 201, set(2))
			for buyer := range 40 {
				answer, code := 201, ""
				if buyer%13 > 0 || buyer > 13 {
					answer, code = 409, "out_of_stock"
				}
				c.write(fmt.Sprint("buyer ", buyer), 3, answer, add(-1)).Code = code
			}
			c.end(0, 3)
		},
		"a sale whose orders expire while a crowd is refused": func(c *changes) {
			c.write("a", 0, 201, set(5))
			for buyer := range 65 {
				a := c.write(fmt.Sprint("buyer ", buyer), 3, 409, add(-1))
				a.Code, a.Return = "out_of_stock", a.Invoke+time.Duration(20+buyer)*time.Millisecond
				if buyer%8 == 0 && buyer > 0 { // sold, told late, and unpaid
					a.Status, a.Code, a.Resource = 201, "", fmt.Sprint("order ", buyer)
					a.Return += time.Duration(max(0, buyer-40)) * 10 * time.Second
					c.books.Orders = append(c.books.Orders, books.Order{ID: a.Resource, Status: "expired"})
				}
			}
			c.end(5, 17)
		},
		"an order that expired": func(c *changes) {
			c.write("a", 0, 201, set(2))
			c.write("b", 3, 201, add(-2)).Resource = "o"
			c.books.Orders = []books.Order{{ID: "o", Status: "expired"}}
			c.write("", 5, 200, told(0))
			c.end(2, 3)
		},
		"a customer": func(c *changes) {
			c.write("", 0, 200, set(1)).Operation = journal.Rename
			c.write("", 0, 0, set(2))
			c.books.Customers = map[string]string{shelf: "faults-3-4-2"}
			c.books.Events = []books.Event{{Subject: shelf, Type: books.CustomerUpdated}, {Subject: shelf, Type: books.CustomerUpdated}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var c changes
			happened(&c)
			require.Empty(t, c.found())
		})
	}
}

func TestChanges_ThatActTwiceOrLateAreFound(t *testing.T) {
	t.Parallel()
	for name, happened := range map[string]func(*changes){
		"a sale is undone": func(c *changes) {
			c.write("", 0, 200, set(5)).Return = 15 * time.Second
			c.write("b", 1, 201, add(-2))
			c.write("", 4, 200, told(3))
			c.end(5, 0)
		},
		"acted twice": func(c *changes) { c.write("", 0, 201, set(5)); c.end(5, 2) },
		"no answer, and late": func(c *changes) {
			c.write("", 0, 504, set(5))
			c.write("", 20, 201, set(6))
			c.end(5, 2)
		},
		"turned away, and acted": func(c *changes) {
			c.write("a", 0, 201, set(5))
			c.write("", 3, 503, set(7)).Code = "overloaded"
			c.end(7, 2)
		},
		"a replay acts": func(c *changes) {
			c.write("a", 0, 201, set(5))
			c.write("b", 3, 201, add(-2))
			c.write("a", 30, 201, set(5))
			c.end(5, 3)
		},
		"an older one acts after a newer one": func(c *changes) { c.write("a", 0, 201, set(5)); c.write("b", 3, 200, set(6)); c.end(5, 0) },
		"more was sold than there was": func(c *changes) {
			c.write("a", 0, 201, set(1))
			c.write("b", 3, 201, add(-2))
			c.end(0, 0)
		},
		"out of stock while there was some": func(c *changes) {
			c.write("a", 0, 201, set(2))
			c.write("b", 3, 409, add(-2)).Code = "out_of_stock"
			c.end(2, 1)
		},
		"a buyer is denied the last unit": func(c *changes) {
			c.write("a", 0, 201, set(2))
			c.write("b", 3, 201, add(-1))
			for buyer := range 40 {
				c.write(fmt.Sprint("buyer ", buyer), 3, 409, add(-1)).Code = "out_of_stock"
			}
			c.end(1, 2)
		},
		"changed under a condition that did not hold": func(c *changes) {
			c.write("a", 0, 201, set(1))
			c.write("b", 3, 200, set(2))
			c.write("c", 6, 200, ifVersion(set(9), 1))
			c.end(9, 3)
		},
		"a condition that held failed": func(c *changes) {
			c.write("a", 0, 201, set(1))
			c.write("c", 3, 412, ifVersion(set(9), 1)).Code = "precondition_failed"
			c.end(1, 1)
		},
		"told another stock": func(c *changes) { n := int64(4); r := set(5); r.Stock = &n; c.write("a", 0, 201, r); c.end(5, 1) },
		"three events of two changes": func(c *changes) {
			c.write("", 0, 200, set(1)).Operation = journal.Rename
			c.write("", 3, 200, set(2))
			c.books.Customers = map[string]string{shelf: "faults-3-4-2"}
			for range 3 {
				c.books.Events = append(c.books.Events, books.Event{Subject: shelf, Type: books.CustomerUpdated})
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var c changes
			happened(&c)
			found := c.found()
			require.Len(t, found, 1)
			require.Equal(t, shelf, found[0].Key, "its history shows it")
		})
	}
}
