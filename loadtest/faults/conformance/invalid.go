package conformance

import (
	"bytes"
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// heads are the ways to make a head invalid: a part of it, if it has that, becomes one of some
// texts. Those that lead nowhere cannot succeed, whatever the route. Some are requests that no HTTP
// client sends; nginx ignores a broken header and an unknown expectation.
var heads = []struct {
	part    *regexp.Regexp
	nowhere bool
	with    []string
}{
	{part: regexp.MustCompile(`Authorization: .*\n`), with: []string{
		"", "Authorization: Bearer sk_nobody\r\n", "Authorization: Basic eDp5\r\n"}},
	{part: key, with: []string{"", keyIs(strings.Repeat("k", 256)), keyIs(""), keyIs(`"abc`), keyIs("schlüssel"),
		keyIs("4242424242424242"), keyIs("a") + keyIs("b")}},
	{part: regexp.MustCompile(`application/json`), with: []string{"text/plain", "application/json; charset="}},
	{part: regexp.MustCompile(`\r\n$`), with: []string{"Prefer: wait=-1, wait=x;;\r\n\r\n", "Accept: image/png\r\n\r\n",
		"Content-Encoding: gzip\r\n\r\n", "X-Request-ID: a\tb\r\n\r\n", "broken\r\n\r\n"}},
	{part: regexp.MustCompile(`^\w+`), with: []string{"HEAD", "PURGE", "TRACE", "OPTIONS", "DELETE", "LINK", "get"}},
	{part: regexp.MustCompile(` HTTP`), with: []string{"?cursor=%ff HTTP", "?limit=101 HTTP", "?limit=ten HTTP", "?limit=%zz&; HTTP"}},
	{part: length, with: []string{"${0}Expect: foo\r\n"}},

	{part: path, nowhere: true, with: []string{" /nowhere ", " /v1 ", " /v1/nowhere ", " /v2/orders ", " /v1/orders/ ",
		" /v1//orders ", " /%00 ", " /v1/products/%zz "}},
	{part: path, nowhere: true, with: []string{" /v1/idempotency-keys/%ff%fe ", " /v1/idempotency-keys/4242424242424242 "}},
	{part: path, nowhere: true, with: []string{" /v1/products/" + strings.Repeat("a", 200) + " ",
		" /v1/products/" + strings.Repeat("a", 3000) + " ", " /" + strings.Repeat("a", 40_000) + " "}},
	{part: key, nowhere: true, with: []string{keyIs("a\x01b")}},
	{part: regexp.MustCompile(`^[^\r]*`), nowhere: true, with: []string{"GET"}},
	{part: regexp.MustCompile(`^\S+ \S+`), nowhere: true, with: []string{"PURGE /nowhere", "CONNECT 127.0.0.1:1"}},
	{part: regexp.MustCompile(`HTTP/1.1`), nowhere: true, with: []string{"HTTP/9.9"}},
	{part: regexp.MustCompile(`Host: .*\n`), nowhere: true, with: []string{""}},
	{part: length, nowhere: true, with: []string{"Transfer-Encoding: foo\r\n", "Transfer-Encoding: chunked\r\n",
		"Content-Length: 2\r\nContent-Length: 3\r\n", "Content-Length: -1\r\n"}},
	{part: regexp.MustCompile(`\r\n$`), nowhere: true, with: []string{"X-Large: " + strings.Repeat("a", 40_000) + "\r\n\r\n"}},
}

// Parts that are changed in several ways.
var (
	path   = regexp.MustCompile(` \S+ `)
	key    = regexp.MustCompile(`Idempotency-Key: .*\n`)
	length = regexp.MustCompile(`Content-Length: .*\n`)
)

func keyIs(value string) string { return "Idempotency-Key: " + value + "\r\n" }

// bodies are the ways to make a body invalid.
var bodies = []func(g *generator, body []byte) []byte{
	func(g *generator, _ []byte) []byte {
		return []byte(pick(g, "", strings.Repeat(" ", 70_000), strings.Repeat("[", 20_000)))
	},
	func(g *generator, body []byte) []byte { return body[:g.random.IntN(len(body)+1)] },
	func(_ *generator, body []byte) []byte { return slices.Concat(body, body) },
	func(_ *generator, body []byte) []byte {
		return bytes.Replace(body, []byte(`":"`), []byte("\":\"\xff"), 1)
	},
	func(_ *generator, body []byte) []byte { return slices.Concat([]byte("\xef\xbb\xbf"), body) },
	func(g *generator, _ []byte) []byte {
		garbage := make([]byte, g.random.IntN(200))
		for i := range garbage {
			garbage[i] = byte(g.random.UintN(256))
		}
		return garbage
	},
	onMember(func(_ *generator, o map[string]any, name string) { delete(o, name) }),
	onMember(func(_ *generator, o map[string]any, _ string) { o["unknown"] = true }),
	onMember(func(g *generator, o map[string]any, name string) { o[name] = pick(g, wrong...) }),
	onMember(func(g *generator, o map[string]any, name string) { o[name] = json.Number(pick(g, outOfRange...)) }),
}

// wrong is of another type or a text out of range.
var wrong = []any{nil, true, 1.5, []any{}, map[string]any{},
	"x", "", strings.Repeat("x", 300), "\x00", "4242 4242 4242 4242", "\u2028"}

var outOfRange = []string{"0", "-1", "1e13", "1e400", "9007199254740993", "9223372036854775808", "0.1", "-0"}

// onMember changes a member of the body, at any depth.
func onMember(do func(g *generator, object map[string]any, name string)) func(*generator, []byte) []byte {
	return func(g *generator, raw []byte) []byte {
		var body map[string]any
		if json.Unmarshal(raw, &body) != nil || len(body) == 0 {
			return raw
		}
		object := body
		for g.chance(50) {
			inner := object[pick(g, sortedKeys(object)...)]
			if list, ok := inner.([]any); ok && len(list) > 0 {
				inner = list[0]
			}
			next, ok := inner.(map[string]any)
			if !ok || len(next) == 0 {
				break
			}
			object = next
		}
		do(g, object, pick(g, sortedKeys(object)...))
		raw, _ = json.Marshal(body)
		return raw
	}
}

func pick[T any](g *generator, of ...T) T { return of[g.random.IntN(len(of))] }

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
