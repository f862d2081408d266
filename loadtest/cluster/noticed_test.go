package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/loadtest/faults/journal"
)

// A step begins at 10 s and ends at 20 s.
var attempts = []journal.Attempt{
	{Key: "before", Invoke: 9 * time.Second, Return: 9 * time.Second, Error: "connection refused"},
	{Key: "a", Invoke: 11 * time.Second, Return: 12 * time.Second, Error: "dial tcp: connect: connection refused"},
	{Key: "a", Invoke: 12 * time.Second, Return: 13 * time.Second, Status: 503, Code: "store_unavailable"},
	{Key: "a", Invoke: 21 * time.Second, Return: 22 * time.Second, Status: 201, Body: "x"},
	{Key: "b", Invoke: 13 * time.Second, Return: 14 * time.Second, Status: 201, Body: "y"},
	{Key: "c", Invoke: 14 * time.Second, Return: 20 * time.Second, Error: "context deadline exceeded"},
}

func TestNoticed_CountsWhatBeganInTheStep(t *testing.T) {
	t.Parallel()
	require.Equal(t, "| a step | 10 | 4 | 1 connections refused, 1 without an answer in time, 1 × 503 store_unavailable | 9.0 s | 1.0 s |",
		noticed("a step", attempts, 10*time.Second, 20*time.Second))
	require.Equal(t, "| the next | 5 | 1 | 0 | 0.0 s | 11.0 s |", noticed("the next", attempts, 20*time.Second, 25*time.Second))
	require.Equal(t, "| quiet | 5 | 0 | 0 | 0.0 s | 0.0 s |", noticed("quiet", attempts, 30*time.Second, 35*time.Second))
}

func TestRetried_SaysWhatBecameOfEachKey(t *testing.T) {
	t.Parallel()
	require.Equal(t, "keys of which an attempt failed: 3; their retries got: 2 undecided, 1 × 201", retried(attempts))
}

func TestFailure_IsNoAnswerOfTheService(t *testing.T) {
	t.Parallel()
	for want, a := range map[string]journal.Attempt{
		"":                          {Status: 409, Code: "idempotency_in_progress"},
		"× 503 overloaded":          {Status: 503, Code: "overloaded"},
		"× 502":                     {Status: 502},
		"connections refused":       {Error: "dial tcp 10.96.0.7:80: connect: connection refused"},
		"connections broken":        {Error: "read tcp 10.96.0.7:80: read: connection reset by peer"},
		"without an answer in time": {Error: "context deadline exceeded"},
	} {
		require.Equal(t, want, failure(a))
	}
}
