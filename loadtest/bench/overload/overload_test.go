package main

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	vegeta "github.com/tsenart/vegeta/v12/lib"
)

func TestRow_TellsAnswersApart(t *testing.T) {
	t.Parallel()
	r := &row{Codes: codes{}}
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
	require.Equal(t, codes{"503 request_timeout": 1, "500 ": 1}, r.Codes)
	require.InDelta(t, 30, r.P99, 1)
	require.InDelta(t, 5, r.AwayP99, 0.1, "apart from what was done")
}

func TestConfig_ReadsTheRates(t *testing.T) {
	t.Parallel()
	cfg, err := parseConfig([]string{"-rates", "300, 600", "-for", "5s"}, nil)
	require.NoError(t, err)
	require.Equal(t, []int{300, 600}, cfg.rates)
	for _, wrong := range [][]string{{"-rates", "many"}, {"-rates", "0"}, {"-for", "0s"}, {"-retries", "-1"}} {
		_, err := parseConfig(wrong, nil)
		require.Error(t, err, wrong)
	}
}

func TestLateOnes_CountsOnlyAfterTheGrace(t *testing.T) {
	t.Parallel()
	all := []purchase{
		{began: 9 * time.Second, code: http.StatusServiceUnavailable},
		{began: 10 * time.Second, code: http.StatusCreated, took: wellAnswered},
		{began: 10 * time.Second, code: http.StatusCreated, took: wellAnswered + 1},
		{began: 11 * time.Second, code: http.StatusServiceUnavailable},
		{began: 12 * time.Second},
	}
	require.Equal(t, 3, lateOnes(all, 10*time.Second))
}
