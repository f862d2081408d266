package idempotency_test

import (
	"encoding/json"
	"fmt"
	"math/big"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/oncepay/oncepay/idempotency"
	"github.com/oncepay/oncepay/idempotency/memstore"
)

func fingerprint(body string, excluded ...string) idempotency.Fingerprint {
	return idempotency.FingerprintOf(httptest.NewRequest(http.MethodPost, "/orders", nil), []byte(body), excluded...)
}

func TestFingerprint_IsEqualForTheSameRequest(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		a, b     string
		excluded []string
	}{
		"member order":           {a: `{"a":1,"b":2}`, b: `{"b":2,"a":1}`},
		"whitespace":             {a: `{"a":[1,2]}`, b: " {\n\t\"a\" : [ 1 , 2 ]\r\n}\n"},
		"nested member order":    {a: `{"x":[{"a":1,"b":{"c":2,"d":3}}]}`, b: `{"x":[{"b":{"d":3,"c":2},"a":1}]}`},
		"escapes":                {a: `{"a":"A\/\u00e9"}`, b: `{"a":"\u0041/é"}`},
		"escaped name":           {a: `{"a":1}`, b: `{"\u0061":1}`},
		"surrogate pair":         {a: `"\ud83d\ude00"`, b: `"😀"`},
		"spellings of a number":  {a: `[100, 1.50, 0.1]`, b: `[1e2, 15E-1, 1.0e-1]`},
		"zeros":                  {a: `[0, 0.0]`, b: `[-0, 0e9]`},
		"largest exact integer":  {a: `9007199254740992`, b: `9007199254740992.0`},
		"excluded":               {a: `{"a":1,"t":1}`, b: `{"a":1,"t":2}`, excluded: []string{"t"}},
		"excluded, absent":       {a: `{"a":1}`, b: `{"t":2,"a":1}`, excluded: []string{"t"}},
		"excluded, first":        {a: `{"a":1,"b":2,"c":3}`, b: `{"a":9,"b":2,"c":3}`, excluded: []string{"a"}},
		"excluded, middle":       {a: `{"a":1,"b":2,"c":3}`, b: `{"a":1,"c":3}`, excluded: []string{"b"}},
		"excluded, all":          {a: `{"t":1,"u":[]}`, b: `{}`, excluded: []string{"t", "u"}},
		"excluded, deep":         {a: `{"x":[{"t":1,"y":{"t":{"z":[1]}}}]}`, b: `{"x":[{"y":{}}]}`, excluded: []string{"x.t", "x.y.t"}},
		"excluded, of a batch":   {a: `[{"id":1,"a":1},{"id":2}]`, b: `[{"id":3,"a":1},{"id":4}]`, excluded: []string{"id"}},
		"excluded, with a dot":   {a: `{"a.b":1}`, b: `{}`, excluded: []string{"a.b"}},
		"excluded, any value":    {a: `{"t":{"a":"}],{\""}}`, b: `{"t":[["]"],"\\"]}`, excluded: []string{"t"}},
		"excluded, odd name":     {a: `{"é\"\n":1}`, b: `{}`, excluded: []string{"é\"\n"}},
		"excluded, escaped":      {a: `{"\u0074":1}`, b: `{}`, excluded: []string{"t"}},
		"excluded number":        {a: `{"t":1.5e300}`, b: `{"t":-7}`, excluded: []string{"t"}},
		"same bytes, not JSON":   {a: `a=1&b=2`, b: `a=1&b=2`},
		"same bytes, duplicates": {a: `{"a":1,"a":2}`, b: `{"a":1,"a":2}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, fingerprint(tt.a, tt.excluded...), fingerprint(tt.b, tt.excluded...))
		})
	}
}

func TestFingerprint_DiffersForOtherRequests(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		a, b     string
		excluded []string
	}{
		"value":                    {a: `{"a":1}`, b: `{"a":2}`},
		"type":                     {a: `{"a":1}`, b: `{"a":"1"}`},
		"null and absent":          {a: `{"a":null}`, b: `{}`},
		"array order":              {a: `[1,2]`, b: `[2,1]`},
		"case":                     {a: `{"a":1}`, b: `{"A":1}`},
		"unnormalised text":        {a: `"\u00e9"`, b: `"e\u0301"`},
		"beyond a double":          {a: `{"amount":9007199254740993}`, b: `{"amount":9007199254740992}`},
		"far beyond a double":      {a: `1234567890123456789012`, b: `1234567890123456789013`},
		"long fraction":            {a: `0.1`, b: `0.1000000000000000000001`},
		"underflow":                {a: `1e-999`, b: `0`},
		"other underflow":          {a: `1e-999`, b: `2e-999`},
		"overflow":                 {a: `1e999`, b: `2e999`},
		"huge exponents":           {a: `1e99999999999999999999`, b: `1e99999999999999999998`},
		"duplicate, last":          {a: `{"a":1,"a":2}`, b: `{"a":2}`},
		"duplicate, first":         {a: `{"a":1,"a":2}`, b: `{"a":1}`},
		"duplicate, order":         {a: `{"a":1,"a":2}`, b: `{"a":2,"a":1}`},
		"duplicate, escaped":       {a: `{"a":1,"\u0061":2}`, b: `{"a":2}`},
		"duplicate, excluded":      {a: `{"t":1,"t":2}`, b: `{}`, excluded: []string{"t"}},
		"lone surrogates":          {a: `"\ud800"`, b: `"\ud801"`},
		"replacement character":    {a: `"\ud800"`, b: `"\ufffd"`},
		"invalid UTF-8":            {a: "\"\xff\"", b: "\"\xfe\""},
		"invalid, and replacement": {a: "\"\xff\"", b: "\"\ufffd\""},
		"byte order mark":          {a: "\ufeff{}", b: `{}`},
		"trailing text":            {a: `{} x`, b: `{}`},
		"two values":               {a: `{}{}`, b: `{}`},
		"empty":                    {a: ``, b: `{}`},
		"empty and null":           {a: ``, b: `null`},
		"empty and blank":          {a: ``, b: ` `},
		"not JSON":                 {a: `a=1`, b: `a=2`},
		"not excluded as value":    {a: `{"a":"t"}`, b: `{}`, excluded: []string{"t"}},
		"not excluded as a prefix": {a: `{"tt":1}`, b: `{}`, excluded: []string{"t"}},
		"not excluded elsewhere":   {a: `{"t":1,"a":1}`, b: `{"t":1,"a":2}`, excluded: []string{"t"}},
		"not excluded in an array": {a: `["t"]`, b: `[]`, excluded: []string{"t"}},
		"not excluded below":       {a: `{"account":{"id":1}}`, b: `{"account":{"id":2}}`, excluded: []string{"id"}},
		"not excluded above":       {a: `{"id":1}`, b: `{"id":2}`, excluded: []string{"account.id", "account"}},
		"excluded leaves a shape":  {a: `[{"t":1}]`, b: `[]`, excluded: []string{"t"}},
		"excluded, but not JSON":   {a: `{"t":1`, b: `{"t":2`, excluded: []string{"t"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.NotEqual(t, fingerprint(tt.a, tt.excluded...), fingerprint(tt.b, tt.excluded...))
		})
	}
}

// TestFingerprint_SeparatesItsParts takes requests apart that would run into each other
// if their parts were only put one after the other.
func TestFingerprint_SeparatesItsParts(t *testing.T) {
	t.Parallel()
	seen := map[idempotency.Fingerprint]string{}
	for _, request := range []struct{ method, target, body string }{
		{"POST", "/a", ""}, {"PATCH", "/a", ""}, {"POST", "/ab", ""}, {"POST", "/a", "b"}, {"POST", "/a", "?b"}, {"POST", "/a?b", ""},
		{"POST", "/a/b", ""}, {"POST", "/a%2Fb", ""}, {"POST", "/a%3Fb", ""}, {"POST", "/a/", ""}, {"POST", "/A", ""},
		{"POST", "/a", "1"}, {"POST", "/a", `"1"`}, {"POST", "/a1", ""}, {"POST", "/a?x=1&y=2", ""}, {"POST", "/a?y=2&x=1", ""},
	} {
		f := idempotency.FingerprintOf(httptest.NewRequest(request.method, request.target, nil), []byte(request.body))
		require.NotContains(t, seen, f, "%v is not %s", request, seen[f])
		seen[f] = fmt.Sprint(request)
	}
}

// TestFingerprint_SeparatesJSONFromBytes makes sure that no raw body passes for a canonical one.
func TestFingerprint_SeparatesJSONFromBytes(t *testing.T) {
	t.Parallel()
	canonical, raw := `{"a":1}`, `{"a":1,"a":1}`
	require.NotEqual(t, fingerprint(canonical), fingerprint(raw))
	require.Equal(t, fingerprint(" "+canonical), fingerprint(canonical))
	require.NotEqual(t, fingerprint(" "+raw), fingerprint(raw), "raw bodies count byte by byte")
}

// TestPolicy_HeadersBelongToTheRequest sends one key with different headers.
func TestPolicy_HeadersBelongToTheRequest(t *testing.T) {
	t.Parallel()
	policy := idempotency.Policy{Headers: []string{"if-match", "If-None-Match"}}
	seen := map[idempotency.Fingerprint]string{}
	handler := idempotency.New(memstore.New(), idempotency.Always(policy), idempotency.WithSharedScope()).Handler(
		http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			f := idempotency.ClaimFrom(r.Context()).Fingerprint
			require.NotContains(t, seen, f, "%v is not %s", r.Header, seen[f])
			seen[f] = fmt.Sprint(r.Header)
		}))
	for i, header := range []http.Header{
		{}, {"If-Match": {""}}, {"If-Match": {"*"}}, {"If-None-Match": {"*"}}, {"If-Match": {"*"}, "If-None-Match": {"*"}},
		{"If-Match": {`"1"`}}, {"If-Match": {`"1"`, `"2"`}}, {"If-Match": {`"1", "2"`}},
	} {
		r := httptest.NewRequest(http.MethodPut, "/a", strings.NewReader("{}"))
		r.Header = header
		r.Header.Set(idempotency.HeaderKey, fmt.Sprint(i))
		handler.ServeHTTP(httptest.NewRecorder(), r)
	}
	require.Len(t, seen, 8)
	require.Contains(t, seen, idempotency.FingerprintOf(httptest.NewRequest(http.MethodPut, "/a", nil), []byte("{}")), "without them it is as it was")
}

func TestFingerprint_HandlesDeepNesting(t *testing.T) {
	t.Parallel()
	const bytes = 1 << 20 // as much as a request may have
	for name, body := range map[string]string{
		"open arrays":      strings.Repeat("[", bytes),
		"open objects":     strings.Repeat(`{"a":`, bytes/5),
		"arrays":           strings.Repeat("[", bytes/2) + strings.Repeat("]", bytes/2),
		"objects":          strings.Repeat(`{"a":`, bytes/6) + "1" + strings.Repeat("}", bytes/6),
		"deep, but parsed": strings.Repeat(`{"a":`, 9000) + "1" + strings.Repeat("}", 9000),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			once := fingerprint(body, "t")
			require.Equal(t, once, fingerprint(body, "t"))
			require.NotEqual(t, once, fingerprint(body+"x", "t"))
		})
	}
}

// jsonValue draws any JSON value whose numbers fit a double.
func jsonValue(depth int) *rapid.Generator[any] {
	return rapid.Custom(func(t *rapid.T) any {
		kind := rapid.IntRange(0, 6).Draw(t, "kind")
		if depth == 0 {
			kind %= 5
		}
		switch kind {
		case 0:
			return nil
		case 1:
			return rapid.Bool().Draw(t, "bool")
		case 2:
			return float64(rapid.Int32().Draw(t, "integer"))
		case 3:
			if f := rapid.Float64().Draw(t, "double"); f != 0 {
				return f
			}
			return 0.0 // JSON's -0 is no other number
		case 4:
			return rapid.String().Draw(t, "string")
		case 5:
			return rapid.SliceOfN(jsonValue(depth-1), 0, 4).Draw(t, "array")
		}
		return rapid.MapOfN(rapid.SampledFrom([]string{"a", "b", "t", "u", "é", "", `"`, "\n"}), jsonValue(depth-1), 0, 5).Draw(t, "object")
	})
}

// spell writes a value with members in a drawn order, drawn whitespace, and,
// where it is allowed to, additional members of a name that it leaves out, but none below members.
func spell(t *rapid.T, out *strings.Builder, value any, extra string) {
	space := func() { out.WriteString(rapid.SampledFrom([]string{"", "", " ", "\n\t", "\r "}).Draw(t, "space")) }
	space()
	defer space()
	switch v := value.(type) {
	case map[string]any:
		members := make([]string, 0, len(v)+1)
		for name, member := range v {
			if name != extra {
				members = append(members, spellMember(t, name, member))
			}
		}
		if extra != "" && rapid.Bool().Draw(t, "with extra") {
			members = append(members, spellMember(t, extra, jsonValue(2).Draw(t, "extra")))
		}
		if len(members) > 0 {
			members = rapid.Permutation(members).Draw(t, "order")
		}
		out.WriteString("{" + strings.Join(members, ",") + "}")
	case []any:
		out.WriteString("[")
		for i, element := range v {
			if i > 0 {
				out.WriteString(",")
			}
			spell(t, out, element, extra)
		}
		out.WriteString("]")
	default:
		text, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		out.Write(text)
	}
}

func spellMember(t *rapid.T, name string, value any) string {
	quoted, err := json.Marshal(name)
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	out.Write(quoted)
	out.WriteString(":")
	spell(t, &out, value, "")
	return out.String()
}

func TestFingerprint_HasItsProperties(t *testing.T) {
	t.Parallel()
	t.Run("spelling doesn't matter", rapid.MakeCheck(func(t *rapid.T) {
		value := jsonValue(4).Draw(t, "value")
		var a, b strings.Builder
		spell(t, &a, value, "")
		spell(t, &b, value, "")
		if fingerprint(a.String()) != fingerprint(b.String()) {
			t.Fatalf("%s\n%s", a.String(), b.String())
		}
	}))
	t.Run("excluded members don't matter", rapid.MakeCheck(func(t *rapid.T) {
		value := jsonValue(4).Draw(t, "value")
		var a, b strings.Builder
		spell(t, &a, value, "t")
		spell(t, &b, value, "t")
		if fingerprint(a.String(), "t", "other") != fingerprint(b.String(), "t", "other") {
			t.Fatalf("%s\n%s", a.String(), b.String())
		}
	}))
	t.Run("values matter", rapid.MakeCheck(func(t *rapid.T) {
		a, b := jsonValue(3).Draw(t, "a"), jsonValue(3).Draw(t, "b")
		textA, errA := json.Marshal(a) // members in the order of their names
		textB, errB := json.Marshal(b)
		if errA != nil || errB != nil {
			t.Fatal(errA, errB)
		}
		same := string(textA) == string(textB)
		if same != (fingerprint(string(textA)) == fingerprint(string(textB))) {
			t.Fatalf("%s\n%s", textA, textB)
		}
	}))
}

// FuzzFingerprint checks on any bytes that fingerprinting ends without a panic,
// and that two different JSON values are never the same.
func FuzzFingerprint(f *testing.F) {
	for _, body := range []string{`{"a":[1,{"t":2}],"t":3}`, `9007199254740993`, `{"a":1,"a":2}`, `"\ud800"`, "\xff", `[[[]]]`, `1e400`, `{"t":1}`} {
		f.Add(body, `{"a":1}`)
	}
	f.Fuzz(func(t *testing.T, a, b string) {
		fingerprint(a, "t", "a")
		if fingerprint(a) != fingerprint(b) || a == b {
			return
		}
		require.Equal(t, exactValue(t, a), exactValue(t, b), "bodies of one fingerprint mean the same")
	})
}

// exactValue decodes JSON without losing digits.
func exactValue(t *testing.T, body string) any {
	t.Helper()
	decoder := json.NewDecoder(strings.NewReader(body))
	decoder.UseNumber()
	var value any
	require.NoError(t, decoder.Decode(&value), "only JSON can be spelled differently")
	return normalise(t, value)
}

func normalise(t *testing.T, value any) any {
	t.Helper()
	switch v := value.(type) {
	case json.Number:
		exact, ok := new(big.Rat).SetString(v.String())
		require.True(t, ok)
		return exact.RatString()
	case []any:
		for i := range v {
			v[i] = normalise(t, v[i])
		}
	case map[string]any:
		for name := range v {
			v[name] = normalise(t, v[name])
		}
	}
	return value
}
