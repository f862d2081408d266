package conformance

import (
	"bytes"
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strings"
)

// change is one way to make a request invalid. Where it does not apply it changes nothing.
type change struct {
	name string
	do   func(*generator, *request)
}

// changes are all of them.
var changes = []change{
	{"no API key", func(_ *generator, r *request) { r.header.Del("Authorization") }},
	{"unknown API key", func(_ *generator, r *request) { r.header.Set("Authorization", "Bearer sk_nobody") }},
	{"another scheme", func(_ *generator, r *request) { r.header.Set("Authorization", "Basic eDp5") }},
	{"no idempotency key", func(_ *generator, r *request) { r.header.Del("Idempotency-Key") }},
	{"long idempotency key", setKey(strings.Repeat("k", 256))},
	{"empty idempotency key", setKey("")},
	{"half-quoted idempotency key", setKey(`"abc`)},
	{"idempotency key that is no ASCII", setKey("schlüssel")},
	{"card number as a key", setKey("4242424242424242")},
	{"two idempotency keys", func(_ *generator, r *request) { r.header["Idempotency-Key"] = []string{"a", "b"} }},
	{"another content type", setHeader("Content-Type", "text/plain")},
	{"broken content type", setHeader("Content-Type", "application/json; charset=")},
	{"broken Prefer", setHeader("Prefer", "wait=-1, wait=x;;")},
	{"unacceptable", setHeader("Accept", "image/png")},
	{"compressed body", setHeader("Content-Encoding", "gzip")},
	{"control characters in the request ID", setHeader("X-Request-ID", "a\tb")},
	{"HEAD", func(_ *generator, r *request) { r.method, r.body = http.MethodHead, nil }},
	{"unknown method", func(g *generator, r *request) {
		r.method = g.pick("PURGE", "TRACE", "OPTIONS", "DELETE", "LINK", "get")
	}},
	{"unknown path", func(g *generator, r *request) {
		r.route, r.target = nil, g.pick("/nowhere", "/v1", "/v1/nowhere", "/v2/orders", "/v1/orders/", "/v1//orders", "/%00")
	}},
	{"bytes that are no UTF-8 in the path", setPath("/v1/idempotency-keys/%ff%fe")},
	{"card number in the path", setPath("/v1/idempotency-keys/4242424242424242")},
	{"bytes that are no UTF-8 in the query", addQuery("cursor=%ff")},
	{"limit out of range", addQuery("limit=101")},
	{"limit that is no number", addQuery("limit=ten")},
	{"broken query", addQuery("limit=%zz&;")},
	{"long path", func(g *generator, r *request) {
		r.target, r.route = "/v1/products/"+strings.Repeat("a", 200+g.random.IntN(3000)), nil
	}},
	{"no body", func(_ *generator, r *request) { r.body = nil }},
	{"half a body", func(g *generator, r *request) { r.body = r.body[:g.random.IntN(len(r.body)+1)] }},
	{"two bodies", func(_ *generator, r *request) { r.body = slices.Concat(r.body, r.body) }},
	{"bytes that are no UTF-8 in the body", func(_ *generator, r *request) { r.body = bytes.Replace(r.body, []byte(`":"`), []byte("\":\"\xff"), 1) }},
	{"byte order mark", func(_ *generator, r *request) { r.body = slices.Concat([]byte("\xef\xbb\xbf"), r.body) }},
	{"large body", func(_ *generator, r *request) { r.body = bytes.Repeat([]byte(" "), 70_000) }},
	{"deep body", func(_ *generator, r *request) { r.body = bytes.Repeat([]byte("["), 20_000) }},
	{"garbage", func(g *generator, r *request) {
		r.body = make([]byte, g.random.IntN(200))
		for i := range r.body {
			r.body[i] = byte(g.random.UintN(256))
		}
	}},
	{"a member less", onMember(func(_ *generator, o map[string]any, name string) { delete(o, name) })},
	{"an unknown member", onMember(func(_ *generator, o map[string]any, _ string) { o["unknown"] = true })},
	{"a member that is null", onMember(func(_ *generator, o map[string]any, name string) { o[name] = nil })},
	{"a member of another type", onMember(func(g *generator, o map[string]any, name string) {
		o[name] = []any{true, "x", 1.5, []any{}, map[string]any{}, -1, json.Number("9007199254740993")}[g.random.IntN(7)]
	})},
	{"a number out of range", onMember(func(g *generator, o map[string]any, name string) {
		o[name] = json.Number(g.pick("0", "-1", "1e13", "1e400", "9223372036854775808", "0.1", "-0"))
	})},
	{"a text out of range", onMember(func(g *generator, o map[string]any, name string) {
		o[name] = g.pick("", strings.Repeat("x", 300), "\x00", "4242 4242 4242 4242", "\u2028")
	})},
}

func (g *generator) pick(texts ...string) string { return texts[g.random.IntN(len(texts))] }

func setPath(target string) func(*generator, *request) {
	return func(_ *generator, r *request) { r.target, r.route = target, nil }
}

func setKey(key string) func(*generator, *request) {
	return func(_ *generator, r *request) {
		if r.header.Get("Idempotency-Key") != "" {
			r.header.Set("Idempotency-Key", key)
		}
	}
}

func setHeader(name, value string) func(*generator, *request) {
	return func(_ *generator, r *request) { r.header.Set(name, value) }
}

func addQuery(query string) func(*generator, *request) {
	return func(_ *generator, r *request) { r.target += "?" + query }
}

// onMember changes a member of the body, at any depth.
func onMember(do func(g *generator, object map[string]any, name string)) func(*generator, *request) {
	return func(g *generator, r *request) {
		var body map[string]any
		if json.Unmarshal(r.body, &body) != nil || len(body) == 0 {
			return
		}
		object := body
		for g.chance(50) {
			names := sortedKeys(object)
			inner := object[names[g.random.IntN(len(names))]]
			if list, ok := inner.([]any); ok && len(list) > 0 {
				inner = list[0]
			}
			next, ok := inner.(map[string]any)
			if !ok || len(next) == 0 {
				break
			}
			object = next
		}
		names := sortedKeys(object)
		do(g, object, names[g.random.IntN(len(names))])
		r.body, _ = json.Marshal(body)
	}
}

// invalidate applies one change.
func (g *generator) invalidate(r *request) {
	c := changes[g.random.IntN(len(changes))]
	r.change = c.name
	c.do(g, r)
}

// raws are requests that no HTTP client sends. HOST stands for the endpoint, KEY for an API key.
var raws = []struct{ name, text string }{
	{"broken request line", "GET\r\n\r\n"},
	{"version that does not exist", "GET /v1/products HTTP/9.9\r\nHost: HOST\r\n\r\n"},
	{"no host", "GET /v1/products HTTP/1.1\r\n\r\n"},
	{"broken header", "GET /v1/products HTTP/1.1\r\nHost: HOST\r\nbroken\r\n\r\n"},
	{"control character in the key", "POST /v1/orders HTTP/1.1\r\nHost: HOST\r\nAuthorization: Bearer KEY\r\nIdempotency-Key: a\x01b\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"},
	{"unknown expectation", "POST /v1/orders HTTP/1.1\r\nHost: HOST\r\nAuthorization: Bearer KEY\r\nExpect: foo\r\nContent-Length: 2\r\n\r\n{}"},
	{"unknown transfer coding", "POST /v1/orders HTTP/1.1\r\nHost: HOST\r\nAuthorization: Bearer KEY\r\nTransfer-Encoding: foo\r\n\r\n"},
	{"two lengths", "POST /v1/orders HTTP/1.1\r\nHost: HOST\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}"},
	{"broken length", "POST /v1/orders HTTP/1.1\r\nHost: HOST\r\nContent-Length: -1\r\n\r\n"},
	{"broken chunk", "POST /v1/orders HTTP/1.1\r\nHost: HOST\r\nAuthorization: Bearer KEY\r\nIdempotency-Key: raw\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"},
	{"broken escape", "GET /v1/products/%zz HTTP/1.1\r\nHost: HOST\r\n\r\n"},
	{"long request line", "GET /" + strings.Repeat("a", 40_000) + " HTTP/1.1\r\nHost: HOST\r\n\r\n"},
	{"large headers", "GET /v1/products HTTP/1.1\r\nHost: HOST\r\nX-Large: " + strings.Repeat("a", 40_000) + "\r\n\r\n"},
	{"unknown method at nowhere", "PURGE /nowhere HTTP/1.1\r\nHost: HOST\r\nAuthorization: Bearer KEY\r\n\r\n"},
	{"tunnel", "CONNECT HOST HTTP/1.1\r\nHost: HOST\r\n\r\n"},
}

func (g *generator) rawRequest(r request) request {
	raw := raws[g.random.IntN(len(raws))]
	host := r.base[strings.Index(r.base, "//")+2:]
	r.valid, r.change, r.method, r.target = false, raw.name, http.MethodPost, "(raw)"
	r.raw = []byte(strings.NewReplacer("HOST", host, "KEY", g.cfg.APIKey).Replace(raw.text))
	return r
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
