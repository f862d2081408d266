package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/loadtest/faults/journal"
)

func TestHistory_ShowsTheKeys(t *testing.T) {
	t.Parallel()
	var text bytes.Buffer
	w := journal.NewWriter(&text)
	for i, a := range []journal.Attempt{
		{Key: "one", Account: "a", Operation: "order", Purpose: journal.Burst, Status: 409, Code: "idempotency_in_progress"},
		{Key: "two", Account: "a", Operation: "order", Purpose: journal.Burst, Status: 201},
		{Key: "one", Account: "a", Operation: "order", Purpose: journal.Burst, Status: 201, Number: 2},
		{Key: "one", Account: "b", Operation: "order", Purpose: journal.OtherAccount, Error: "connection reset"},
	} {
		a.Invoke, a.Return = time.Duration(10-i)*time.Second, time.Duration(10-i)*time.Second+1
		w.Add(a)
	}
	require.NoError(t, w.Close())
	file := filepath.Join(t.TempDir(), "j")
	require.NoError(t, os.WriteFile(file, append(text.Bytes(), `{"key":"three"`...), 0o600))

	show := func(args ...string) string {
		t.Helper()
		var out bytes.Buffer
		require.NoError(t, command(t.Context(), append([]string{"history"}, args...), nil, &out))
		return out.String()
	}
	one := show(file, "one")
	require.Contains(t, one, "torn")
	require.NotContains(t, one, "two")
	require.Contains(t, one, "one of b:")
	require.Less(t, strings.Index(one, " 8.000"), strings.Index(one, "10.000"), "in order of time")

	var out bytes.Buffer
	require.ErrorContains(t, command(t.Context(), []string{"history", file}, nil, &out), "needs a journal and keys")
	require.ErrorIs(t, command(t.Context(), []string{"history", "nowhere", "one"}, nil, &out), os.ErrNotExist)
}
