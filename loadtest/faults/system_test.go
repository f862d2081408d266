package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/loadtest/faults/verify"
)

func TestACampaignThatSeesNothingWithoutProtectionIsAFailure(t *testing.T) {
	t.Parallel()
	blind := campaign{cfg: config{System: control}}
	require.ErrorIs(t, blind.unproved(), errBlind)

	for _, c := range []*campaign{
		{cfg: config{System: control}, score: verify.Score{DoubledKeys: 1}},
		{cfg: config{System: "setnx"}},
		{cfg: config{System: "setnx"}, score: verify.Score{DoubledKeys: 1, LostAnswers: 3}},
	} {
		require.NoError(t, c.unproved(), "what others do wrong is counted, not judged")
	}

	idle := campaign{cfg: config{System: "setnx"}, violations: []verify.Violation{{Rule: verify.Proof, Detail: "nothing was hurt"}}}
	require.ErrorContains(t, idle.unproved(), "nothing was hurt")
}
