package app

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/internal/testenv"
)

// TestAdministration_IsLogged with who did what, and without the text of a key.
func TestAdministration_IsLogged(t *testing.T) {
	t.Parallel()
	cfg := configFor(t, testenv.Postgres(t), testenv.Redis(t))
	var logs logBuffer
	log := cfg.NewLogger(&logs)
	var out bytes.Buffer
	require.NoError(t, AddAccount(t.Context(), cfg, log, &out, "Shop"))
	account := uuid.MustParse(strings.TrimSpace(out.String()))
	contains := func(parts ...string) {
		t.Helper()
		lines := strings.Split(strings.TrimSpace(logs.String()), "\n")
		for _, part := range append(parts, `"event":"administration"`, `"operator":"`, `"role":"`) {
			require.Contains(t, lines[len(lines)-1], part)
		}
	}
	contains("an account was added", account.String(), "Shop")

	out.Reset()
	require.NoError(t, IssueAPIKey(t.Context(), cfg, log, &out, account, true, time.Hour))
	issued := out.String()[:len("sk_live_")+8]
	contains("an API key was issued", account.String(), issued, `"read_only":true`, `"expires":"2`)
	require.NotContains(t, logs.String(), strings.Fields(out.String())[0])

	out.Reset()
	require.NoError(t, RotateAPIKey(t.Context(), cfg, log, &out, issued, time.Hour))
	rotated := out.String()[:len("sk_live_")+8]
	contains("an API key was rotated", issued, rotated)
	require.NotContains(t, logs.String(), strings.Fields(out.String())[0])

	require.NoError(t, RevokeAPIKey(t.Context(), cfg, log, &out, rotated))
	contains("an API key was revoked", rotated)
	require.NoError(t, SuspendAccount(t.Context(), cfg, log, &out, account, true))
	contains("an account was suspended", account.String(), `"suspended":true`)

	before := logs.String()
	require.Error(t, RevokeAPIKey(t.Context(), cfg, log, &out, rotated))
	require.Equal(t, before, logs.String(), "nothing was changed")
}
