package curve

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	vegeta "github.com/tsenart/vegeta/v12/lib"
)

func TestRow_TellsAnswersApart(t *testing.T) {
	t.Parallel()
	r := &Row{codes: map[string]int{}}
	for _, result := range []vegeta.Result{
		{Code: 201, Latency: 10 * time.Millisecond},
		{Code: 201, Latency: 30 * time.Millisecond},
		{Code: 503, Body: []byte(`{"code":"overloaded"}`), Latency: 5 * time.Millisecond},
		{Code: 503, Body: []byte(`{"code":"request_timeout"}`)},
		{Code: 429}, {Code: 500}, {Code: 0, Error: "EOF"},
	} {
		r.add(&result)
	}
	r.close(2 * time.Second)
	require.InDelta(t, 3.5, r.Sent, 0.01, "a second")
	require.InDelta(t, 1.0, r.Done, 0.01, "a second")
	require.Equal(t, []int{1, 1, 2, 1}, []int{r.TurnedAway, r.Limited, r.Failed, r.NoAnswer})
	require.Equal(t, map[string]int{"503 request_timeout": 1, "500 ": 1}, r.codes)
	require.InDelta(t, 30, r.P99, 1)
	require.InDelta(t, 5, r.awayP99, 0.1, "apart from what was done")
}
