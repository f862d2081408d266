package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/loadtest/books"
	"github.com/oncepay/oncepay/loadtest/faults/verify"
)

func TestUnproved_FailsACampaignThatSeesNothingWithoutProtection(t *testing.T) {
	t.Parallel()
	blind := campaign{cfg: config{System: control}}
	require.ErrorIs(t, blind.unproved(), errBlind)

	for _, c := range []*campaign{
		{cfg: config{System: control}, score: verify.Score{DoubledKeys: 1}},
		{cfg: config{System: "setnx"}},
		{cfg: config{System: "setnx"}, score: verify.Score{DoubledKeys: 1, LostAnswers: 3}},
	} {
		require.NoError(t, c.unproved(), "what others do wrong is counted, and no failure")
	}

	idle := campaign{cfg: config{System: "setnx"}, violations: []books.Violation{{Rule: verify.Conclusive, Detail: "no fault ran"}}}
	require.ErrorContains(t, idle.unproved(), "no fault ran")
}
