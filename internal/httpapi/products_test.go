package httpapi_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/api"
)

const (
	poster     = "/v1/products/poster"
	posterBody = `{"name":"Poster","price":{"amount":900,"currency":"USD"},"stock":3}`
)

func TestPutProduct_NeedsNoKey(t *testing.T) {
	t.Parallel()
	s := setup(t)
	put := request{method: "PUT", path: poster, body: posterBody}
	first := s.do(put)
	require.Equal(t, http.StatusCreated, first.status, first.body)
	require.Equal(t, poster, first.header.Get("Location"))
	require.Equal(t, first.body, s.get(poster).body)
	second := s.do(put)
	require.Equal(t, http.StatusOK, second.status, second.body)
	require.Empty(t, second.header.Get("Location"))
	s.do(request{method: "GET", path: "/v1/products/none"}).problem(404, "product_not_found")
	require.Empty(t, s.observed(), "no key, no check")
}

// TestPutProduct_HonoursItsKey: an order takes a unit between the copies of one request.
func TestPutProduct_HonoursItsKey(t *testing.T) {
	t.Parallel()
	s := setup(t)
	put := request{method: "PUT", path: poster, body: posterBody, key: newKey()}
	customer := s.customer().ID
	first := s.do(put)
	require.Equal(t, http.StatusCreated, first.status, first.body)
	s.post("/v1/orders", newKey(), orderOf(customer, "poster", 1), http.StatusCreated)
	for _, forget := range []bool{false, true} {
		if forget {
			require.NoError(t, s.redis.FlushDB(s.ctx).Err())
		}
		put.replica = 1
		again := s.do(put)
		require.True(t, again.replayed())
		requireSame(t, first, again)
		require.EqualValues(t, 2, decode[api.Product](s.get(poster)).Stock, "the sale stands")
	}
	other := put
	other.body = strings.Replace(posterBody, `"stock":3`, `"stock":4`, 1)
	s.do(other).problem(422, "idempotency_key_reused")
	require.Equal(t, "put_product", *s.keyState(put.key).Operation)
	require.Equal(t, poster, *s.keyState(put.key).Resource)
}

// TestETag_IsThatOfTheLastChange: a GET shows what the change answered, and an order makes another
// version.
func TestETag_IsThatOfTheLastChange(t *testing.T) {
	t.Parallel()
	s := setup(t)
	seen := map[string]bool{}
	look := func() string {
		tag := s.get(poster).header.Get("ETag")
		require.Regexp(t, `^"[0-9]+"$`, tag)
		require.False(t, seen[tag], "%s comes again", tag)
		seen[tag] = true
		return tag
	}
	put := request{method: "PUT", path: poster, body: posterBody}
	for range 2 {
		require.Equal(t, s.do(put).header.Get("ETag"), look())
	}
	changed := s.do(request{method: "PATCH", path: poster, key: newKey(), body: `{"stock_change":7}`})
	require.Equal(t, changed.header.Get("ETag"), look())
	require.Equal(t, changed.body, s.get(poster).body)
	order := s.post("/v1/orders", newKey(), orderOf(s.customer().ID, "poster", 1), http.StatusCreated)
	look()
	s.do(request{method: "PATCH", path: order.header.Get("Location"), key: newKey(), body: `{"status":"cancelled"}`})
	look()
	require.EqualValues(t, 10, decode[api.Product](s.get(poster)).Stock, "as before the order")
}

func TestPrecondition_IsCheckedBeforeTheChange(t *testing.T) {
	t.Parallel()
	s := setup(t)
	s.do(request{method: "PUT", path: poster, body: posterBody})
	s.do(request{method: "PUT", path: poster, body: posterBody})
	for _, c := range []struct {
		header, value, path string
		status              int
	}{
		{"If-Match", `"1"`, poster, 412},
		{"If-Match", `W/"2"`, poster, 412},
		{"If-Match", `"two"`, poster, 412},
		{"If-Match", `"02"`, poster, 412},
		{"If-Match", `"2,3"`, poster, 412},
		{"If-Match", `*`, "/v1/products/none", 412},
		{"If-Match", `"1"`, "/v1/products/none", 412},
		{"If-None-Match", `*`, poster, 412},
		{"If-Match", `2`, poster, 400},
		{"If-Match", ``, poster, 400},
		{"If-Match", `"2",`, poster, 400},
		{"If-None-Match", `"1"`, poster, 400},
		{"If-Match", `"1" , W/"9","2"`, poster, 200}, // the version is 3 from here on
		{"If-Match", ` * `, poster, 200},
		{"If-None-Match", `*`, "/v1/products/fresh", 201},
	} {
		before := s.effect()
		answer := s.do(request{method: "PUT", path: c.path, body: posterBody, edit: with(c.header, c.value)})
		require.Equal(t, c.status, answer.status, "%s: %s: %s", c.header, c.value, answer.body)
		if c.status >= 400 {
			require.Equal(t, before, s.effect(), c.value)
		}
		if c.status == 412 {
			answer.problem(412, "precondition_failed")
			patch := request{method: "PATCH", path: poster, key: newKey(), body: `{"name":"A2"}`, edit: with(c.header, c.value)}
			if c.path == poster {
				s.do(patch).problem(412, "precondition_failed")
				require.Equal(t, before, s.effect(), c.value)
			}
		}
	}
}

// TestPrecondition_OfWhatHasNoVersionsIsRefused: a client that trusts it would undo a change of
// another one.
func TestPrecondition_OfWhatHasNoVersionsIsRefused(t *testing.T) {
	t.Parallel()
	s := setup(t)
	order := s.order(s.customer().ID)
	before := s.effect()
	cancel := request{method: "PATCH", path: "/v1/orders/" + order.ID.String(), key: newKey(), body: `{"status":"cancelled"}`, edit: with("If-Match", `"1"`)}
	s.do(cancel).problem(400, "invalid_request")
	require.Equal(t, before, s.effect())
	cancel.edit = with("If-Match", "*")
	require.Equal(t, 200, s.do(cancel).status)
}

// TestPrecondition_BelongsToTheRequest: its answer is kept, and another condition is another
// request.
func TestPrecondition_BelongsToTheRequest(t *testing.T) {
	t.Parallel()
	s := setup(t)
	tag := s.do(request{method: "PUT", path: poster, body: posterBody}).header.Get("ETag")
	put := request{method: "PUT", path: poster, body: posterBody, key: newKey(), edit: with("If-Match", tag)}
	first := s.do(put)
	require.Equal(t, http.StatusOK, first.status, first.body)
	again := s.do(put)
	require.True(t, again.replayed(), "the version is another one by now")
	requireSame(t, first, again)
	for _, edit := range []func(*http.Request){with("If-Match", first.header.Get("ETag")), without("If-Match"), with("If-None-Match", "*")} {
		other := put
		other.edit = edit
		s.do(other).problem(422, "idempotency_key_reused")
	}

	put.key, put.edit = newKey(), with("If-Match", tag)
	refused := s.do(put)
	refused.problem(412, "precondition_failed")
	require.NoError(t, s.redis.FlushDB(s.ctx).Err())
	kept := s.do(put)
	require.True(t, kept.replayed())
	requireSame(t, refused, kept)
}

func TestUpdateProduct_RefusesWhatCannotBe(t *testing.T) {
	t.Parallel()
	s := setup(t)
	change := func(path, body string) reply {
		return s.do(request{method: "PATCH", path: path, key: newKey(), body: body})
	}
	before := s.effect()
	change("/v1/products/tee-black", `{"stock_change":-1000000000}`).problem(409, "out_of_stock")
	change("/v1/products/tee-black", `{"stock_change":1000000000}`).problem(422, "stock_too_large")
	change("/v1/products/none", `{"stock_change":1}`).problem(404, "product_not_found")
	for _, body := range []string{`{}`, `{"stock":1}`, `{"stock_change":1.5}`, `{"stock_change":1000000001}`, `{"price":{"amount":0,"currency":"USD"}}`, `{"name":""}`} {
		change("/v1/products/tee-black", body).problem(400, "invalid_request")
	}
	s.do(request{method: "PATCH", path: "/v1/products/tee-black", body: `{"stock_change":1}`}).problem(400, "idempotency_key_missing")
	require.Equal(t, before, s.effect())
}
