package canonical

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var jsonTexts = []string{
	`{}`, `[]`, `""`, `0`, `-0`, `true`, `null`, ` {"b" : 1 , "a":[ 1 ,2]} `, `{"a":1,"a":2}`, `{"a":1,"\u0061":2}`,
	`[1e2,1E+2,1.0,0.1,1e21,1e-7,123456789012345678,9007199254740993,1e400,-1.5e-9,0.000001,100000000000000000000]`,
	`"\ud83d\ude00 \u00e9 \/ \b\f\n\r\t \u001f \" \\"`, `"\ud83d"`, `"\ude00\ud83d"`, `"\ud83d\u0041"`, `"\x"`, `"\u12"`,
	`{"\ud83d\ude00":1,"\uffff":2,"\ue000":3,"\ud7ff":4,"a":5,"":6}`, `{"a\nb":1,"a\u0001":2,"a\\":3,"a\"":4,"a":5}`,
	`[01]`, `[1.]`, `[.5]`, `[+1]`, `[1e]`, `[--1]`, `[1,]`, `[,1]`, `{"a"}`, `{"a":}`, `{a:1}`, `{"a":1,}`, `[1 2]`, `tru`, `[nul]`,
	`{"t":1,"x":{"t":{"t":2},"y":[{"t":3}]}}`, `{"a.b":1,"a":[[{"b":1}],{"c":{"b":1}}]}`, `{"t":1}`, `{"t":1,"t":2}`, `{"a":1,"t":2,"b":3}`, `[{"t":1},{"t":2,"a":1}]`,
	`{"a":1}{"b":2}`, `{"a":1} x`, ``, ` `, `"`, `{`, `[`, `{"a`, `"a` + "\x00" + `"`, `"` + "\xff" + `"`, `"` + "\xed\xa0\x80" + `"`,
	"\"\u2028\u007f\"", `[1e-400]`, `[5e-324]`, `[1.7976931348623157e308]`, `[0.30000000000000004]`, `[-0.0]`, `[1e+00]`, `[1e00000002]`,
}

// requireLikeTheReference compares Form with the same on an independent library.
func requireLikeTheReference(t *testing.T, text string) {
	t.Helper()
	for _, excluded := range [][]string{nil, {"t"}, {"a", "t", "\n"}, {"x.t", "x.y.t", "x.t.t", "a.b"}} {
		want, wantOK := referenceCanonical([]byte(text), excluded)
		got, ok := Form([]byte(text), excluded)
		require.Equal(t, wantOK, ok, "%q without %q", text, excluded)
		if ok {
			require.Equal(t, string(want), string(got), "%q without %q", text, excluded)
		}
	}
}

func TestForm_IsThatOfTheReference(t *testing.T) {
	t.Parallel()
	for _, text := range jsonTexts {
		requireLikeTheReference(t, text)
	}
}

func TestForm_LimitsNesting(t *testing.T) {
	t.Parallel()
	for depth, want := range map[int]bool{maxNesting: true, maxNesting + 1: false, 1 << 20: false} {
		_, ok := Form([]byte(strings.Repeat("[", depth)+strings.Repeat("]", depth)), nil)
		require.Equal(t, want, ok, depth)
	}
}

func FuzzForm(f *testing.F) {
	for _, text := range jsonTexts {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if strings.Count(text, "[")+strings.Count(text, "{") <= maxNesting {
			requireLikeTheReference(t, text)
		}
	})
}
