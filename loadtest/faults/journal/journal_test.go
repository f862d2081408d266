package journal_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/loadtest/faults/journal"
)

func TestAttempt_HasOneOutcome(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		attempt journal.Attempt
		want    journal.Outcome
	}{
		"created":             {journal.Attempt{Status: 201}, journal.Succeeded},
		"cut in half":         {journal.Attempt{Status: 201, Error: "unexpected EOF"}, journal.Unknown},
		"no answer":           {journal.Attempt{Error: "reset"}, journal.Unknown},
		"nothing at all":      {journal.Attempt{}, journal.Unknown},
		"bad gateway":         {journal.Attempt{Status: 502}, journal.Unknown},
		"unavailable":         {journal.Attempt{Status: 503, Code: "payment_outcome_unknown"}, journal.Unknown},
		"in progress":         {journal.Attempt{Status: 409, Code: "idempotency_in_progress"}, journal.InProgress},
		"reused":              {journal.Attempt{Status: 422, Code: "idempotency_key_reused"}, journal.Reused},
		"out of stock":        {journal.Attempt{Status: 409, Code: "out_of_stock"}, journal.Refused},
		"declined":            {journal.Attempt{Status: 402, Code: "payment_declined"}, journal.Refused},
		"more than was paid":  {journal.Attempt{Status: 422, Code: "refund_exceeds_payment"}, journal.Refused},
		"order is being paid": {journal.Attempt{Status: 409, Code: "order_being_paid"}, journal.Rejected},
		"malformed":           {journal.Attempt{Status: 400, Code: "invalid"}, journal.Rejected},
		"too many":            {journal.Attempt{Status: 429, Code: "rate_limited"}, journal.Rejected},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, test.want, test.attempt.Outcome())
		})
	}
}

func TestWriter_KeepsEveryAttempt(t *testing.T) {
	t.Parallel()
	var file bytes.Buffer
	w := journal.NewWriter(&file)
	w.Add(journal.Attempt{Key: "one", Status: 201})
	w.Add(journal.Attempt{Key: "two", Error: "reset"})
	require.NoError(t, w.Close())
	require.Len(t, w.Attempts(), 2)
	lines := json.NewDecoder(&file)
	for _, want := range w.Attempts() {
		var is journal.Attempt
		require.NoError(t, lines.Decode(&is))
		require.Equal(t, want, is)
	}
}

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("disk full") }

func TestWriter_ReportsAFullDisk(t *testing.T) {
	t.Parallel()
	w := journal.NewWriter(full{})
	w.Add(journal.Attempt{Key: "one"})
	require.ErrorContains(t, w.Close(), "disk full")
}
