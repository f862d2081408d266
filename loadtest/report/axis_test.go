package report_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/loadtest/report"
)

func TestLog_HasMarksAtPowersOfTen(t *testing.T) {
	t.Parallel()
	const ms = time.Millisecond
	l := report.Log{From: ms, To: 500 * ms}
	require.Equal(t, []time.Duration{ms, 10 * ms, 100 * ms}, l.Marks())
	require.Zero(t, l.Part(0))
	require.InDelta(t, 1.0, l.Part(time.Hour), 1e-9)
	require.Less(t, l.Part(2*ms), l.Part(3*ms))
}

func TestMarks_AreRoundAndApart(t *testing.T) {
	t.Parallel()
	require.Equal(t, []time.Duration{0, 5 * time.Second, 10 * time.Second}, report.Marks(11*time.Second, 3*time.Second))
}

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
