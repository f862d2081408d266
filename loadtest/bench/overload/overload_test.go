package main

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

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
