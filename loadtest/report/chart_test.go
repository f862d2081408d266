package report_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/loadtest/report"
)

func TestPercentile_IsOneOfTheValues(t *testing.T) {
	t.Parallel()
	var values []time.Duration
	for i := range 200 {
		values = append(values, time.Duration(i+1))
	}
	require.Equal(t, time.Duration(100), report.Percentile(values, 50))
	require.Equal(t, time.Duration(198), report.Percentile(values, 99))
	require.Equal(t, time.Duration(1), report.Percentile(values[:1], 50))
}
