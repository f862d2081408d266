package console

import (
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestTrickle_CountsWhatItsShoppersMet(t *testing.T) {
	t.Parallel()
	api, requests := &fakeAPI{}, atomic.Int64{}
	c := newTestConsole(t, func(w http.ResponseWriter, r *http.Request) {
		if requests.Add(1) == 1 {
			http.Error(w, "try again", http.StatusServiceUnavailable)
			return
		}
		api.serve(w, r)
	})
	c.open() // without a page it would stop
	_, said := c.press("/trickle", nil)
	require.Contains(t, said, "A shopper comes every")
	require.Eventually(t, func() bool { v := c.trickle.view(); return v.Paid >= 2 && v.Again == 1 }, patience, time.Millisecond)
	require.Zero(t, c.trickle.view().GaveUp)
	_, said = c.press("/trickle", nil)
	require.Contains(t, said, "No more shoppers")
	require.False(t, c.trickle.view().On)
}

func TestTrickle_StopsWithTheLastPage(t *testing.T) {
	t.Parallel()
	c := newTestConsole(t, (&fakeAPI{}).serve)
	_, _ = c.press("/trickle", nil) // no page is open
	require.Eventually(t, func() bool { return !c.trickle.view().On }, patience, time.Millisecond)
}
