package pspsim

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/go-json-experiment/json"
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

// page asks for one page of a list.
func (b *testBundle) page(path string) (ids []string, next string) {
	b.t.Helper()
	response, err := b.client.Get(b.url + path)
	require.NoError(b.t, err)
	defer response.Body.Close()
	require.Equal(b.t, http.StatusOK, response.StatusCode)
	var page struct {
		Data []entry `json:"data"`
		Next string  `json:"next_cursor"`
	}
	require.NoError(b.t, json.UnmarshalRead(response.Body, &page))
	for _, e := range page.Data {
		ids = append(ids, e.ID)
	}
	return ids, page.Next
}

// TestList_HasPages reads lists page by page, with charges of others between those that match.
func TestList_HasPages(t *testing.T) {
	t.Parallel()
	b := setup(t)
	var all, ours []string
	for i := range 2*maxPage + 1 {
		_, charge := b.mustPost("/v1/charges", fmt.Sprintf("key-%d", i),
			fmt.Sprintf(`{"amount":1,"currency":"USD","reference":"order-%d","source":"tok_declined"}`, i%2))
		all = append(all, charge.ID)
		if i%2 == 0 {
			ours = append(ours, charge.ID)
		}
	}
	for range 2 { // the second time after a restart
		for _, c := range []struct {
			query string
			size  int
			want  []string
		}{
			{"", maxPage, all},
			{"reference=order-0", maxPage, ours},
			{"key=key-42", maxPage, all[42:43]},
			{"key=key-", maxPage, nil},
		} {
			var got []string
			for cursor := "0"; cursor != ""; {
				var ids []string
				ids, cursor = b.page("/v1/charges?" + c.query + "&cursor=" + cursor)
				got = append(got, ids...)
				require.LessOrEqual(t, len(ids), c.size, c.query)
				require.True(t, cursor == "" || len(ids) == c.size, "each page but the last one is full: %s", c.query)
				require.Equal(t, cursor == "", len(got) == len(c.want), "only the last page has no cursor: %s", c.query)
			}
			require.Equal(t, c.want, got, c.query)
		}
		b = b.crash()
	}
}

func TestList_RefusesWhatIsNoPage(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for _, query := range []string{"cursor=-1", "cursor=x", "cursor="} {
		response, err := b.client.Get(b.url + "/v1/charges?" + query)
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
		require.Equal(t, http.StatusBadRequest, response.StatusCode, query)
	}
	ids, next := b.page("/v1/charges?cursor=1000000")
	require.Empty(t, ids)
	require.Empty(t, next)
}
