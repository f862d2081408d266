package httpapi

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/internal/cardnumber"
)

func TestCheckJSON_IsStrict(t *testing.T) {
	t.Parallel()
	deep := func(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }
	for name, c := range map[string]struct{ body, detail string }{
		"fine":                    {`{"a":[1,-2,{"b":null,"c":true}],"d":"é"}`, ""},
		"deepest":                 {deep(32), ""},
		"same name elsewhere":     {`{"a":{"x":1},"b":{"x":2}}`, ""},
		"empty":                   {"", "The request needs a JSON body."},
		"blank":                   {" \n", "The request needs a JSON body."},
		"malformed":               {`{"a":}`, "The body is not valid JSON (at byte 5)."},
		"cut":                     {`{"a":[1,`, "The body ends in the middle of its JSON value."},
		"garbage after":           {`{"a":1} x`, "The body has something after its JSON value."},
		"second value":            {`{"a":1}{"a":1}`, "The body has something after its JSON value."},
		"comment":                 {`{"a":1/*x*/}`, "The body is not valid JSON (at byte 6)."},
		"too deep":                {deep(33), "The body is nested more than 32 levels deep."},
		"much too deep":           {deep(30_000), "The body is nested more than 32 levels deep."},
		"duplicate":               {`{"a":{"b":1,"b":2}}`, "a.b is given twice."},
		"duplicate, escaped":      {`{"a":1,"\u0061":2}`, "a is given twice."},
		"invalid UTF-8":           {"{\"a\":\"\xff\"}", "The body is not valid UTF-8."},
		"lone surrogate":          {`{"a":"\ud800"}`, "The body is not valid JSON (at byte 6)."},
		"NUL":                     {`{"a":["x\u0000y"]}`, "a[0] must not contain the character U+0000."},
		"fraction":                {`{"items":[{"quantity":1.5}]}`, "items[0].quantity must be a whole number, written without fraction or exponent."},
		"whole fraction":          {`{"a":1.0}`, "a must be a whole number, written without fraction or exponent."},
		"exponent":                {`{"a":1e30}`, "a must be a whole number, written without fraction or exponent."},
		"overflow":                {`{"a":9223372036854775808}`, "a is out of range."},
		"underflow":               {`{"a":-9223372036854775809}`, "a is out of range."},
		"name that is no name":    {`{"a b\"":1e3}`, `"a b\"" must be a whole number, written without fraction or exponent.`},
		"name that is long":       {`{"` + strings.Repeat("x", 500) + `":1e3}`, `"` + strings.Repeat("x", 64) + `…" must be a whole number, written without fraction or exponent.`},
		"card number":             {`{"a":{"b":["4242 4242 4242 4242"]}}`, errCardNumber.detail},
		"card number as a number": {`{"a":4242424242424242}`, errCardNumber.detail},
		"card number as a minus":  {`{"a":-4242424242424242}`, errCardNumber.detail},
		"card number as a name":   {`{"4242424242424242":1,"4242424242424242":2}`, errCardNumber.detail},
		"card number, escaped":    {`{"a":"\u0034242424242424242"}`, errCardNumber.detail},
		"card number at the root": {`"4242424242424242"`, errCardNumber.detail},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := checkJSON([]byte(c.body), nil)
			if c.detail == "" {
				require.NoError(t, err)
				return
			}
			p := problemOf(err)
			require.Equal(t, http.StatusBadRequest, p.status)
			require.Equal(t, c.detail, p.detail)
		})
	}
}

// No message repeats a card number, whatever else is wrong with the body.
func FuzzStrictJSONNeverRepeatsACardNumber(f *testing.F) {
	f.Add(`{"4242424242424242":1,"4242424242424242":`)
	f.Add(`{"a":{"4242 4242 4242 4242":1e9}}`)
	f.Fuzz(func(t *testing.T, body string) {
		if err := checkJSON([]byte(body), nil); err != nil {
			require.False(t, cardnumber.Contains(problemOf(err).detail), "%s", err)
		}
	})
}
