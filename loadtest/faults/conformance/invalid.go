package conformance

import (
	"bytes"
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// change is one way to make a request invalid. Where it does not apply it changes nothing.
type change struct {
	name    string
	nowhere bool // then there is nothing that could succeed
	head    func(g *generator, head string) string
	body    func(g *generator, body []byte) []byte
}

// changes are all of them. The last ones are requests that no HTTP client sends; nginx ignores a
// broken header and an unknown expectation.
var changes = []change{
	{name: "no API key", head: swap(`Authorization: .*\n`, "")},
	{name: "unknown API key", head: swap(`Bearer \S+`, "Bearer sk_nobody")},
	{name: "another scheme", head: swap(`Bearer \S+`, "Basic eDp5")},
	{name: "no idempotency key", head: swap(key, "")},
	{name: "long idempotency key", head: swap(key, "Idempotency-Key: "+strings.Repeat("k", 256)+"\r\n")},
	{name: "empty idempotency key", head: swap(key, "Idempotency-Key: \r\n")},
	{name: "half-quoted idempotency key", head: swap(key, "Idempotency-Key: \"abc\r\n")},
	{name: "idempotency key that is no ASCII", head: swap(key, "Idempotency-Key: schlüssel\r\n")},
	{name: "card number as a key", head: swap(key, "Idempotency-Key: 4242424242424242\r\n")},
	{name: "two idempotency keys", head: swap(end, "Idempotency-Key: a\r\nIdempotency-Key: b\r\n\r\n")},
	{name: "another content type", head: swap(`application/json`, "text/plain")},
	{name: "broken content type", head: swap(`application/json`, "application/json; charset=")},
	{name: "broken Prefer", head: swap(end, "Prefer: wait=-1, wait=x;;\r\n\r\n")},
	{name: "unacceptable", head: swap(end, "Accept: image/png\r\n\r\n")},
	{name: "compressed body", head: swap(end, "Content-Encoding: gzip\r\n\r\n")},
	{name: "control characters in the request ID", head: swap(end, "X-Request-ID: a\tb\r\n\r\n")},
	{name: "HEAD", head: swap(`^\w+`, "HEAD"), body: replaced("")},
	{name: "unknown method", head: swap(`^\w+`, "PURGE", "TRACE", "OPTIONS", "DELETE", "LINK", "get")},
	{name: "unknown path", nowhere: true, head: swap(path,
		" /nowhere ", " /v1 ", " /v1/nowhere ", " /v2/orders ", " /v1/orders/ ", " /v1//orders ", " /%00 ")},
	{name: "bytes that are no UTF-8 in the path", nowhere: true, head: swap(path, " /v1/idempotency-keys/%ff%fe ")},
	{name: "card number in the path", nowhere: true, head: swap(path, " /v1/idempotency-keys/4242424242424242 ")},
	{name: "long path", nowhere: true, head: swap(path, " /v1/products/"+strings.Repeat("a", 200)+" ", " /v1/products/"+strings.Repeat("a", 3000)+" ")},
	{name: "bytes that are no UTF-8 in the query", head: swap(` HTTP`, "?cursor=%ff HTTP")},
	{name: "limit out of range", head: swap(` HTTP`, "?limit=101 HTTP")},
	{name: "limit that is no number", head: swap(` HTTP`, "?limit=ten HTTP")},
	{name: "broken query", head: swap(` HTTP`, "?limit=%zz&; HTTP")},

	{name: "no body", body: replaced("")},
	{name: "half a body", body: func(g *generator, body []byte) []byte { return body[:g.random.IntN(len(body)+1)] }},
	{name: "two bodies", body: func(_ *generator, body []byte) []byte { return slices.Concat(body, body) }},
	{name: "bytes that are no UTF-8 in the body", body: func(_ *generator, body []byte) []byte {
		return bytes.Replace(body, []byte(`":"`), []byte("\":\"\xff"), 1)
	}},
	{name: "byte order mark", body: func(_ *generator, body []byte) []byte { return slices.Concat([]byte("\xef\xbb\xbf"), body) }},
	{name: "large body", body: replaced(strings.Repeat(" ", 70_000))},
	{name: "deep body", body: replaced(strings.Repeat("[", 20_000))},
	{name: "garbage", body: func(g *generator, _ []byte) []byte {
		body := make([]byte, g.random.IntN(200))
		for i := range body {
			body[i] = byte(g.random.UintN(256))
		}
		return body
	}},
	{name: "a member less", body: onMember(func(_ *generator, o map[string]any, name string) { delete(o, name) })},
	{name: "an unknown member", body: onMember(func(_ *generator, o map[string]any, _ string) { o["unknown"] = true })},
	{name: "a member that is null", body: onMember(func(_ *generator, o map[string]any, name string) { o[name] = nil })},
	{name: "a member of another type", body: onMember(func(g *generator, o map[string]any, name string) {
		o[name] = []any{true, "x", 1.5, []any{}, map[string]any{}, -1, json.Number("9007199254740993")}[g.random.IntN(7)]
	})},
	{name: "a number out of range", body: onMember(func(g *generator, o map[string]any, name string) {
		o[name] = json.Number(g.pick("0", "-1", "1e13", "1e400", "9223372036854775808", "0.1", "-0"))
	})},
	{name: "a text out of range", body: onMember(func(g *generator, o map[string]any, name string) {
		o[name] = g.pick("", strings.Repeat("x", 300), "\x00", "4242 4242 4242 4242", "\u2028")
	})},

	{name: "broken request line", nowhere: true, head: swap(`^[^\r]*`, "GET")},
	{name: "version that does not exist", nowhere: true, head: swap(`HTTP/1.1`, "HTTP/9.9")},
	{name: "no host", nowhere: true, head: swap(`Host: .*\n`, "")},
	{name: "broken header", head: swap(end, "broken\r\n\r\n")},
	{name: "control character in the key", nowhere: true, head: swap(key, "Idempotency-Key: a\x01b\r\n")},
	{name: "unknown expectation", head: swap(length, "${0}Expect: foo\r\n")},
	{name: "unknown transfer coding", nowhere: true, head: swap(length, "Transfer-Encoding: foo\r\n")},
	{name: "two lengths", nowhere: true, head: swap(length, "Content-Length: 2\r\nContent-Length: 3\r\n")},
	{name: "broken length", nowhere: true, head: swap(length, "Content-Length: -1\r\n")},
	{name: "broken chunk", nowhere: true, head: swap(length, "Transfer-Encoding: chunked\r\n"), body: replaced("zz\r\n")},
	{name: "broken escape", nowhere: true, head: swap(path, " /v1/products/%zz ")},
	{name: "long request line", nowhere: true, head: swap(path, " /"+strings.Repeat("a", 40_000)+" ")},
	{name: "large headers", nowhere: true, head: swap(end, "X-Large: "+strings.Repeat("a", 40_000)+"\r\n\r\n")},
	{name: "unknown method at nowhere", nowhere: true, head: swap(`^\S+ \S+`, "PURGE /nowhere")},
	{name: "tunnel", nowhere: true, head: swap(`^\S+ \S+`, "CONNECT 127.0.0.1:1")},
}

// Patterns of parts of a head.
const (
	path   = ` \S+ `
	key    = `Idempotency-Key: .*\n`
	length = `Content-Length: .*\n`
	end    = `\r\n$`
)

// swap has one of some texts take the place of a part of the head.
func swap(pattern string, with ...string) func(*generator, string) string {
	part := regexp.MustCompile(pattern)
	return func(g *generator, head string) string {
		at := part.FindStringSubmatchIndex(head)
		if at == nil {
			return head
		}
		return head[:at[0]] + string(part.ExpandString(nil, g.pick(with...), head, at)) + head[at[1]:]
	}
}

func replaced(body string) func(*generator, []byte) []byte {
	return func(*generator, []byte) []byte { return []byte(body) }
}

// onMember changes a member of the body, at any depth.
func onMember(do func(g *generator, object map[string]any, name string)) func(*generator, []byte) []byte {
	return func(g *generator, raw []byte) []byte {
		var body map[string]any
		if json.Unmarshal(raw, &body) != nil || len(body) == 0 {
			return raw
		}
		object := body
		for g.chance(50) {
			inner := object[g.pick(sortedKeys(object)...)]
			if list, ok := inner.([]any); ok && len(list) > 0 {
				inner = list[0]
			}
			next, ok := inner.(map[string]any)
			if !ok || len(next) == 0 {
				break
			}
			object = next
		}
		do(g, object, g.pick(sortedKeys(object)...))
		raw, _ = json.Marshal(body)
		return raw
	}
}

func (g *generator) pick(texts ...string) string { return texts[g.random.IntN(len(texts))] }

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
