package idempotency_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/idempotency"
)

func TestParseKey_ReadsBothForms(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("k", 255)
	for name, tt := range map[string]struct {
		values []string
		key    string
		code   string
	}{
		"bare":                   {values: []string{"abc"}, key: "abc"},
		"quoted":                 {values: []string{`"abc"`}, key: "abc"},
		"bare UUID with a digit": {values: []string{"8e03978e-40d5-43e8-bc93-6894a57f9324"}, key: "8e03978e-40d5-43e8-bc93-6894a57f9324"},
		"quoted UUID":            {values: []string{`"8e03978e-40d5-43e8-bc93-6894a57f9324"`}, key: "8e03978e-40d5-43e8-bc93-6894a57f9324"},
		"number":                 {values: []string{"42"}, key: "42"},
		"looks like a boolean":   {values: []string{"?1"}, key: "?1"},
		"looks like bytes":       {values: []string{":YWJj:"}, key: ":YWJj:"},
		"base64":                 {values: []string{"a+b/c=="}, key: "a+b/c=="},
		"inner spaces":           {values: []string{"order 1"}, key: "order 1"},
		"outer spaces":           {values: []string{" \tabc "}, key: "abc"},
		"quoted outer spaces":    {values: []string{`" abc "`}, key: " abc "},
		"escapes":                {values: []string{`"a\"b\\c"`}, key: `a"b\c`},
		"inner quote, bare":      {values: []string{`a"b`}, key: `a"b`},
		"quoted comma":           {values: []string{`"a, b"`}, key: "a, b"},
		"parameters":             {values: []string{`"abc";v=1`}, key: "abc"},
		"longest":                {values: []string{long}, key: long},
		"longest quoted":         {values: []string{`"` + long + `"`}, key: long},

		"too long":             {values: []string{long + "k"}, code: idempotency.CodeKeyTooLong},
		"too long quoted":      {values: []string{`"` + long + `k"`}, code: idempotency.CodeKeyTooLong},
		"empty":                {values: []string{""}, code: idempotency.CodeKeyMalformed},
		"blank":                {values: []string{"  "}, code: idempotency.CodeKeyMalformed},
		"empty quoted":         {values: []string{`""`}, code: idempotency.CodeKeyMalformed},
		"twice":                {values: []string{"a", "b"}, code: idempotency.CodeKeyMalformed},
		"twice the same":       {values: []string{"a", "a"}, code: idempotency.CodeKeyMalformed},
		"twice, joined":        {values: []string{"a, b"}, code: idempotency.CodeKeyMalformed},
		"twice, quoted joined": {values: []string{`"a", "b"`}, code: idempotency.CodeKeyMalformed},
		"unclosed":             {values: []string{`"abc`}, code: idempotency.CodeKeyMalformed},
		"only a quote":         {values: []string{`"`}, code: idempotency.CodeKeyMalformed},
		"after the quote":      {values: []string{`"abc"def`}, code: idempotency.CodeKeyMalformed},
		"bad escape":           {values: []string{`"a\bc"`}, code: idempotency.CodeKeyMalformed},
		"control character":    {values: []string{"a\x01b"}, code: idempotency.CodeKeyMalformed},
		"inner tab":            {values: []string{"a\tb"}, code: idempotency.CodeKeyMalformed},
		"newline":              {values: []string{"a\nb"}, code: idempotency.CodeKeyMalformed},
		"delete":               {values: []string{"a\x7f"}, code: idempotency.CodeKeyMalformed},
		"NUL, quoted":          {values: []string{"\"a\x00\""}, code: idempotency.CodeKeyMalformed},
		"not ASCII":            {values: []string{"schlüssel"}, code: idempotency.CodeKeyMalformed},
		"invalid UTF-8":        {values: []string{"a\xff"}, code: idempotency.CodeKeyMalformed},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			key, present, err := idempotency.ParseKey(http.Header{idempotency.HeaderKey: tt.values})
			require.True(t, present)
			if tt.code == "" {
				require.Nil(t, err)
				require.Equal(t, tt.key, key)
				return
			}
			require.NotNil(t, err)
			require.Equal(t, tt.code, err.Code)
			require.Equal(t, http.StatusBadRequest, err.Status)
			require.Empty(t, key)
		})
	}
}

func TestParseKey_ReportsAbsence(t *testing.T) {
	t.Parallel()
	key, present, err := idempotency.ParseKey(http.Header{"Content-Type": {"text/plain"}})
	require.Nil(t, err)
	require.False(t, present)
	require.Empty(t, key)
}

func FuzzParseKey(f *testing.F) {
	for _, value := range []string{"abc", `"abc"`, `"a\"b"`, "a, b", `"`, "\x00", `"abc";a=1`} {
		f.Add(value)
	}
	f.Fuzz(func(t *testing.T, value string) {
		key, _, err := idempotency.ParseKey(http.Header{idempotency.HeaderKey: {value}})
		if err != nil {
			require.Empty(t, key)
			return
		}
		require.NotEmpty(t, key)
		require.LessOrEqual(t, len(key), 255)
		quoted := `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(key) + `"`
		again, _, err := idempotency.ParseKey(http.Header{idempotency.HeaderKey: {quoted}})
		require.Nil(t, err, "every key can be sent quoted")
		require.Equal(t, key, again)
	})
}

func TestNewKey_IsRandomAndValid(t *testing.T) {
	t.Parallel()
	keys := map[string]bool{}
	for range 1000 {
		key := idempotency.NewKey()
		keys[key] = true
		parsed, _, problem := idempotency.ParseKey(http.Header{"Idempotency-Key": {key}})
		require.Nil(t, problem)
		require.Equal(t, key, parsed)
		require.Regexp(t, `^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`, key)
	}
	require.Len(t, keys, 1000)
}
