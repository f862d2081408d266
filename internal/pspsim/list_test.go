package pspsim

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestList_FiltersAndKeepsOrder(t *testing.T) {
	t.Parallel()
	b := setup(t)
	require.Empty(t, b.list("/v1/charges"))
	_, one := b.charge("key-1", "tok_visa")
	_, two := b.charge("key-2", "tok_declined")
	_, three := b.mustPost("/v1/charges", "key-3", `{"amount":1,"currency":"EUR","reference":"order-2","source":"tok_visa"}`)
	_, refund := b.refund("key-4", one.ID, 1)

	for range 2 { // the second time after a restart
		require.Equal(t, []entry{one.entry, two.entry, three.entry}, b.list("/v1/charges"))
		require.Equal(t, []entry{one.entry, two.entry}, b.list("/v1/charges?reference=order-1"))
		require.Equal(t, []entry{three.entry}, b.list("/v1/charges?reference=order-2"))
		require.Empty(t, b.list("/v1/charges?reference="))
		require.Equal(t, []entry{two.entry}, b.list("/v1/charges?key=key-2"))
		require.Empty(t, b.list("/v1/charges?key=key-4"), "a refund's")
		require.Equal(t, []entry{refund.entry}, b.list("/v1/refunds?key=key-4"))
		require.Equal(t, []entry{refund.entry}, b.list("/v1/refunds"))
		require.Equal(t, []entry{refund.entry}, b.list("/v1/refunds?charge="+one.ID))
		require.Equal(t, []entry{refund.entry}, b.list("/v1/refunds?reference=refund-1&charge="+one.ID))
		require.Empty(t, b.list("/v1/refunds?charge="+two.ID))
		b = b.crash()
	}
}
