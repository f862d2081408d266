package httpapi_test

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/api"
)

// rawTimeout is far above what an answer takes that waits for nothing.
const rawTimeout = 20 * time.Second

// raw sends text as it is and reads the answer.
func (s *shop) raw(text string) reply {
	s.t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(s.replicas[0].URL, "http://"))
	require.NoError(s.t, err)
	defer func() { _ = conn.Close() }()
	require.NoError(s.t, conn.SetDeadline(time.Now().Add(rawTimeout)))
	_, err = io.WriteString(conn, text)
	require.NoError(s.t, err)
	answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
	require.NoError(s.t, err)
	defer func() { _ = answer.Body.Close() }()
	body, err := io.ReadAll(answer.Body)
	require.NoError(s.t, err)
	return reply{s.t, answer.StatusCode, answer.Header, string(body)}
}

// TestShape_OfAnswersBeforeAnyHandler has requests that net/http cannot read.
func TestShape_OfAnswersBeforeAnyHandler(t *testing.T) {
	t.Parallel()
	s := setup(t)
	for _, c := range []struct {
		text   string
		status int
		code   string
	}{
		{"GET / HTTP/1.1\r\nHost: a\r\nX: \x01\r\n\r\n", 400, "malformed_request"},
		{"POST /v1/orders HTTP/1.1\r\nHost: a\r\nIdempotency-Key: a\x01b\r\n\r\n", 400, "idempotency_key_malformed"},
		{"nonsense\r\n\r\n", 400, "malformed_request"},
		{"GET / HTTP/1.1\r\n\r\n", 400, "malformed_request"},
		{"GET / HTTP/3.0\r\nHost: a\r\n\r\n", 505, "http_version_not_supported"},
		{"GET / HTTP/1.1\r\nHost: a\r\nExpect: foo\r\n\r\n", 417, "expectation_failed"},
		{"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip\r\n\r\n", 501, "not_implemented"},
		{"GET / HTTP/1.1\r\nHost: a\r\nX: " + strings.Repeat("x", 2<<20) + "\r\n\r\n", 431, "headers_too_large"},
		{"PURGE /nowhere HTTP/1.1\r\nHost: a\r\n\r\n", 404, "route_not_found"},
		{"PURGE /v1/orders HTTP/1.1\r\nHost: a\r\n\r\n", 405, "method_not_allowed"},
	} {
		answer := s.raw(c.text)
		answer.problem(c.status, c.code)
		require.NotEmpty(t, answer.header.Get("X-Request-ID"), c.code)
	}
	require.Equal(t, "GET, HEAD, POST", s.raw("PURGE /v1/orders HTTP/1.1\r\nHost: a\r\n\r\n").header.Get("Allow"))
}

// TestShape_OfATooLargeBodyDoesNotWaitForIt has a client that says how long its body is and sends
// nothing of it. net/http would first read the body until its timeout.
func TestShape_OfATooLargeBodyDoesNotWaitForIt(t *testing.T) {
	t.Parallel()
	s := setup(t)
	for _, length := range []string{"65537", "262144", "10000000"} {
		s.raw("POST /v1/orders HTTP/1.1\r\nHost: a\r\nContent-Length: "+length+"\r\n\r\n").problem(413, "body_too_large")
	}
}

func TestShape_OfHeadIsThatOfGet(t *testing.T) {
	t.Parallel()
	s := setup(t)
	order := s.order(s.customer().ID)
	for _, path := range []string{"/v1/products", "/v1/orders/" + order.ID.String(), "/v1/nowhere", "/problems/out_of_stock"} {
		get, head := s.do(request{method: "GET", path: path}), s.do(request{method: "HEAD", path: path})
		require.Equal(t, get.status, head.status, path)
		require.Equal(t, get.header.Get("Content-Type"), head.header.Get("Content-Type"), path)
		require.Empty(t, head.body)
	}
}

// TestShape_TypeResolves follows the type of a problem.
func TestShape_TypeResolves(t *testing.T) {
	t.Parallel()
	s := setup(t)
	missing := s.do(request{method: "POST", path: "/v1/orders", body: "{}"}).problem(400, "invalid_request")
	page := s.do(request{method: "GET", path: missing.Type, edit: without("Authorization")})
	require.Equal(t, http.StatusOK, page.status)
	require.Equal(t, "text/html; charset=utf-8", page.header.Get("Content-Type"))
	require.Contains(t, page.body, "invalid_request")
	s.do(request{method: "GET", path: "/problems/nonsense"}).problem(404, "route_not_found")
}

func TestShape_OfUnauthorizedNamesAScheme(t *testing.T) {
	t.Parallel()
	s := setup(t)
	for _, r := range []request{
		{method: "GET", path: "/v1/orders", edit: without("Authorization")},
		{method: "POST", path: "/v1/webhooks/psp", body: "{}"},
	} {
		answer := s.do(r)
		require.Equal(t, http.StatusUnauthorized, answer.status)
		require.NotEmpty(t, answer.header.Get("WWW-Authenticate"), r.path)
	}
}

// TestShape_OfTextThatIsNoUTF8NeverReachesSQL would be an error in PostgreSQL's log.
func TestShape_OfTextThatIsNoUTF8NeverReachesSQL(t *testing.T) {
	t.Parallel()
	s := setup(t)
	for _, path := range []string{"/v1/idempotency-keys/%ff", "/v1/idempotency-keys/a%00b", "/v1/products/%ff", "/v1/orders?cursor=%ff"} {
		answer := s.do(request{method: "GET", path: path})
		require.Equal(t, http.StatusBadRequest, answer.status, path)
		require.NotEqual(t, "invalid_text", decode[api.Problem](answer).Code, "SQL refused it")
	}
}
