package stack

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/internal/slowreader"
	"github.com/oncepay/oncepay/internal/wait"
)

// nginxBundle is an nginx with its replicas, which are stand-ins.
type nginxBundle struct {
	driver *nativeDriver
	addr   string
}

// setupNginx starts nginx as a native stack does, with changes of its configuration: what is there
// once, and what is there instead. No replica runs yet.
func setupNginx(t *testing.T, changes ...[2]string) nginxBundle {
	t.Helper()
	d := newDriver(t, Topology{})
	if len(changes) > 0 {
		d.root = changedRoot(t, d.root, changes)
	}
	require.NoError(t, d.ensure(testContext(t), Nginx))
	return nginxBundle{d, d.Addr(Nginx)}
}

// changedRoot is a root with nothing but a changed configuration of nginx.
func changedRoot(t *testing.T, root string, changes [][2]string) string {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(root, nginxConf))
	require.NoError(t, err)
	conf := string(raw)
	for _, change := range changes {
		require.Equal(t, 1, strings.Count(conf, change[0]), change[0])
		conf = strings.Replace(conf, change[0], change[1], 1)
	}
	root = t.TempDir()
	path := filepath.Join(root, nginxConf)
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(t, os.WriteFile(path, []byte(conf), 0o644))
	return root
}

// replica starts a stand-in for a replica, which runs until it is stopped or the test ends.
func (b nginxBundle) replica(t *testing.T, name string, handler http.HandlerFunc) (stop func()) {
	t.Helper()
	l, err := net.Listen("tcp", b.driver.Via(Nginx, name))
	require.NoError(t, err)
	server := &http.Server{Handler: handler, ReadHeaderTimeout: testTimeout}
	var serving sync.WaitGroup
	serving.Go(func() { _ = server.Serve(l) })
	stop = func() {
		_ = server.Close() // as when its process ends
		serving.Wait()
	}
	t.Cleanup(stop)
	return stop
}

// exchange sends a request as it is written here and reads the answer.
func (b nginxBundle) exchange(t *testing.T, raw string) (*http.Response, []byte) {
	t.Helper()
	return b.exchangeFrom(t, "127.0.0.1", raw)
}

// exchangeFrom is exchange as a client with another address.
func (b nginxBundle) exchangeFrom(t *testing.T, address, raw string) (*http.Response, []byte) {
	t.Helper()
	conn, err := (&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(address)}}).DialContext(t.Context(), "tcp", b.addr)
	require.NoError(t, err)
	defer func() { _ = conn.Close() }()
	require.NoError(t, conn.SetDeadline(time.Now().Add(testTimeout)))
	_, err = io.WriteString(conn, raw)
	require.NoError(t, err)
	method, _, _ := strings.Cut(raw, " ")
	resp, err := http.ReadResponse(bufio.NewReader(conn), &http.Request{Method: method})
	require.NoError(t, err)
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return resp, body
}

// problem is what each error answer says.
type problem struct {
	Type      string `json:"type"`
	Title     string `json:"title"`
	Status    int    `json:"status"`
	Detail    string `json:"detail"`
	Code      string `json:"code"`
	Error     string `json:"error"`
	RequestID string `json:"request_id"`
}

func TestNginx_AnswersEachErrorInTheAPIsShape(t *testing.T) {
	t.Parallel()
	b := setupNginx(t) // without replicas: nginx itself answers
	const host = "Host: x\r\nX-Request-ID: r1\r\n"
	long := strings.Repeat("x", 9<<10)
	for name, c := range map[string]struct {
		raw    string
		status int
		code   string
	}{
		"no host":              {"GET / HTTP/1.1\r\nX-Request-ID: r1\r\n\r\n", 400, "malformed_request"},
		"a broken line":        {"GET\r\n\r\n", 400, "malformed_request"},
		"a broken path":        {"GET /%zz HTTP/1.1\r\n" + host + "\r\n", 400, "malformed_request"},
		"a zero byte":          {"GET /a HTTP/1.1\r\n" + host + "Idempotency-Key: a\x00b\r\n\r\n", 400, "malformed_request"},
		"two lengths":          {"POST /a HTTP/1.1\r\n" + host + "Content-Length: 1\r\nContent-Length: 2\r\n\r\n", 400, "malformed_request"},
		"a length of letters":  {"POST /a HTTP/1.1\r\n" + host + "Content-Length: x\r\n\r\n", 400, "malformed_request"},
		"TRACE":                {"TRACE / HTTP/1.1\r\n" + host + "\r\n", 405, "method_not_allowed"},
		"a long body":          {"POST /a HTTP/1.1\r\n" + host + "Content-Length: 9999999\r\n\r\n", 413, "body_too_large"},
		"a long line":          {"GET /" + long + " HTTP/1.1\r\n" + host + "\r\n", 414, "uri_too_long"},
		"a long header":        {"GET / HTTP/1.1\r\n" + host + "X-Long: " + long + "\r\n\r\n", 431, "headers_too_large"},
		"an unknown encoding":  {"POST /a HTTP/1.1\r\n" + host + "Transfer-Encoding: gzip\r\n\r\n", 501, "not_implemented"},
		"no replica":           {"GET /a HTTP/1.1\r\n" + host + "\r\n", 502, "bad_gateway"},
		"PUT and no replica":   {"PUT /a HTTP/1.1\r\n" + host + "Content-Length: 2\r\n\r\n{}", 502, "bad_gateway"},
		"HEAD and no replica":  {"HEAD /a HTTP/1.1\r\n" + host + "\r\n", 502, ""},
		"HTTP 3":               {"GET / HTTP/3.0\r\n" + host + "\r\n", 505, "http_version_not_supported"},
		"the problem's place":  {"GET /nginx/problem HTTP/1.1\r\n" + host + "\r\n", 404, "route_not_found"},
		"a quote in the ID":    {"GET /a HTTP/1.1\r\nHost: x\r\nX-Request-ID: \"\r\n\r\n", 502, "bad_gateway"},
		"a method of its own":  {"BREW /a HTTP/1.1\r\n" + host + "\r\n", 502, "bad_gateway"},
		"a lower-case method":  {"get /a HTTP/1.1\r\n" + host + "\r\n", 400, "malformed_request"},
		"a body without a way": {"POST /a HTTP/1.1\r\n" + host + "Transfer-Encoding: chunked\r\n\r\nzz\r\n", 400, "malformed_request"},
	} {
		resp, body := b.exchange(t, c.raw)
		requireProblem(t, name, resp, body, c.status, c.code)
	}
}

// requireProblem checks an answer's shape; a code of "" is that of HEAD.
func requireProblem(t *testing.T, name string, resp *http.Response, body []byte, status int, code string) {
	t.Helper()
	require.Equal(t, status, resp.StatusCode, name)
	require.NotEmpty(t, resp.Header.Get("X-Request-ID"), name)
	require.Equal(t, "application/problem+json", resp.Header.Get("Content-Type"), name)
	require.Equal(t, "no-store", resp.Header.Get("Cache-Control"), name)
	require.Equal(t, "nosniff", resp.Header.Get("X-Content-Type-Options"), name)
	if code == "" {
		require.Empty(t, body, name)
		return
	}
	var p problem
	require.NoError(t, json.Unmarshal(body, &p), "%s: %s", name, body)
	require.Equal(t, problem{
		Type: "/problems/" + code, Title: p.Title, Status: status, Detail: p.Detail,
		Code: code, Error: p.Error, RequestID: resp.Header.Get("X-Request-ID"),
	}, p, name)
	require.NotEmpty(t, p.Title+p.Detail+p.Error, name)
}

// TestNginx_UnfinishedRequestsTakeNothing: a request counts once all of it has arrived. The keys
// are as long as nginx counts, and more than a zone of 1 MiB has room for.
func TestNginx_UnfinishedRequestsTakeNothing(t *testing.T) {
	t.Parallel()
	b := setupNginx(t)
	ok := func(http.ResponseWriter, *http.Request) {}
	b.replica(t, API1, ok)
	b.replica(t, API2, ok)
	const payments = "/v1/orders/x/payments"
	for path, unfinished := range map[string]int{"/v1/orders": 3000, payments: 1100} { // more than nginx lets through
		for n := range unfinished {
			conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", b.addr)
			require.NoError(t, err)
			t.Cleanup(func() { _ = conn.Close() })
			_, err = fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %0250d\r\nContent-Length: 200\r\n\r\n{", path, n)
			require.NoError(t, err)
		}
	}
	for _, path := range []string{"/v1/orders", payments} {
		resp, body := b.exchange(t, fmt.Sprintf("POST %s HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nContent-Length: 2\r\n\r\n{}", path, strings.Repeat("k", 250)))
		require.Equal(t, 200, resp.StatusCode, "%s: %s", path, body)
	}
}

// TestNginx_TurnsAwayWhatNoReplicaHasRoomFor lets one request through to each address of a replica.
func TestNginx_TurnsAwayWhatNoReplicaHasRoomFor(t *testing.T) {
	t.Parallel()
	b := setupNginx(t,
		[2]string{"20081 max_conns=224 ", "20081 max_conns=1 "}, [2]string{"20082 max_conns=224 ", "20082 max_conns=1 "},
		[2]string{"20081 backup max_conns=32 ", "20081 backup max_conns=1 "},
		[2]string{"20082 backup max_conns=32 ", "20082 backup max_conns=1 "})
	const room = 4
	arrived, finish := make(chan bool, room), make(chan bool)
	busy := func(_ http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/payments") {
			return
		}
		arrived <- true
		<-finish
	}
	b.replica(t, API1, busy)
	b.replica(t, API2, busy)
	var running sync.WaitGroup
	for range room {
		running.Go(func() {
			resp, _ := b.exchange(t, plainRequest)
			require.Equal(t, 200, resp.StatusCode)
		})
		<-arrived
	}
	resp, body := b.exchange(t, plainRequest)
	requireProblem(t, "one too many", resp, body, 503, "overloaded")
	require.Equal(t, "1", resp.Header.Get("Retry-After"))
	resp, _ = b.exchange(t, "GET /v1/orders/x/payments HTTP/1.1\r\nHost: x\r\n\r\n")
	require.Equal(t, 200, resp.StatusCode, "what moves money has room of its own")
	close(finish)
	running.Wait()
}

const plainRequest = "GET /v1/a HTTP/1.1\r\nHost: x\r\n\r\n"

func TestNginx_AnswersForSilentReplicasInTheAPIsShape(t *testing.T) {
	t.Parallel()
	b := setupNginx(t, [2]string{"proxy_read_timeout 15s;", "proxy_read_timeout 200ms;"})
	silent := func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }
	b.replica(t, API1, silent)
	b.replica(t, API2, silent)
	resp, body := b.exchange(t, plainRequest)
	requireProblem(t, "silent replicas", resp, body, 504, "gateway_timeout")
	require.Equal(t, "1", resp.Header.Get("Retry-After"))
}

// TestNginx_WithoutConnectionsLeftAnswersInTheAPIsShape leaves nginx a connection for the client
// and none for a replica. Of 8, nginx needs 2 for itself, and 5 are taken by unfinished requests.
func TestNginx_WithoutConnectionsLeftAnswersInTheAPIsShape(t *testing.T) {
	t.Parallel()
	b := setupNginx(t, [2]string{"worker_connections 8192;", "worker_connections 8;"}, [2]string{"worker_processes auto;", "worker_processes 1;"})
	for range 5 {
		conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", b.addr)
		require.NoError(t, err)
		t.Cleanup(func() { _ = conn.Close() })
		_, err = io.WriteString(conn, "GET /a HTTP/1.1\r\nHost:")
		require.NoError(t, err)
	}
	var resp *http.Response
	var body []byte
	require.NoError(t, wait.Until(testContext(t), 50*time.Millisecond, func(context.Context) error {
		if resp, body = b.exchange(t, plainRequest); resp.StatusCode != 503 { // until all of them have been accepted
			return errors.New(resp.Status)
		}
		return nil
	}))
	requireProblem(t, "no connection left", resp, body, 503, "overloaded")
	require.Equal(t, "1", resp.Header.Get("Retry-After"))
}

// TestNginx_ClosesAnUnfinishedRequestWithoutAnAnswer: nginx notes a 408 in its log and sends none
// (ngx_http_request.c, ngx_http_finalize_request).
func TestNginx_ClosesAnUnfinishedRequestWithoutAnAnswer(t *testing.T) {
	t.Parallel()
	b := setupNginx(t, [2]string{"client_header_timeout 10s;", "client_header_timeout 200ms;"}, [2]string{"client_body_timeout 10s;", "client_body_timeout 200ms;"})
	for _, raw := range []string{"POST /a HTTP/1.1\r\nHost: x\r\n", "POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nhalf"} {
		conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", b.addr)
		require.NoError(t, err)
		require.NoError(t, conn.SetDeadline(time.Now().Add(testTimeout)))
		_, err = io.WriteString(conn, raw)
		require.NoError(t, err)
		answer, err := io.ReadAll(conn)
		require.NoError(t, err, raw)
		require.Empty(t, string(answer), raw)
		require.NoError(t, conn.Close())
	}
}

func TestNginx_TellsTheTimeOfAnAttempt(t *testing.T) {
	t.Parallel()
	const copies = 3 // proxy_next_upstream_tries
	b, starts := setupNginx(t), make(chan string, copies)
	fail := func(w http.ResponseWriter, r *http.Request) {
		starts <- r.Header.Get("X-Request-Start")
		panic(http.ErrAbortHandler) // as a replica that is killed
	}
	b.replica(t, API1, fail)
	b.replica(t, API2, fail)
	before := float64(time.Now().UnixMilli()) / 1000
	resp, _ := b.exchange(t, "POST /v1/orders HTTP/1.1\r\nHost: x\r\nIdempotency-Key: k\r\nContent-Length: 0\r\nX-Request-ID: r1\r\nX-Request-Start: t=1\r\n\r\n")
	require.Equal(t, 502, resp.StatusCode)
	require.Equal(t, "1", resp.Header.Get("Retry-After"))

	first := <-starts
	for range copies - 1 {
		require.Equal(t, first, <-starts, "all copies of a request have one time")
	}
	seconds, err := strconv.ParseFloat(strings.TrimPrefix(first, "t="), 64)
	require.NoError(t, err)
	require.InDelta(t, before, seconds, testTimeout.Seconds(), "not what the client said")
	var started map[string]time.Time
	require.NoError(t, wait.Until(testContext(t), time.Millisecond, func(context.Context) error {
		if started, err = b.driver.ReadByNginx(); err == nil && started["r1"].IsZero() {
			return errors.New("it is not logged yet")
		}
		return err
	}))
	require.Equal(t, first, fmt.Sprintf("t=%.3f", float64(started["r1"].UnixMilli())/1000), "although the answer is nginx's own")
}

// TestNginx_TimesARequestByItsHeader: what is sent while its body arrives is newer.
func TestNginx_TimesARequestByItsHeader(t *testing.T) {
	t.Parallel()
	b, starts := setupNginx(t), make(chan string, 1)
	b.replica(t, API1, func(_ http.ResponseWriter, r *http.Request) { starts <- r.Header.Get("X-Request-Start") })
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", b.addr)
	require.NoError(t, err)
	defer func() { _ = conn.Close() }()
	require.NoError(t, conn.SetDeadline(time.Now().Add(testTimeout)))
	_, err = io.WriteString(conn, "POST /v1/orders HTTP/1.1\r\nHost: x\r\nIdempotency-Key: k\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n")
	require.NoError(t, err)
	answer, err := bufio.NewReader(conn).ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "HTTP/1.1 100 Continue\r\n", answer)
	read, later := fmt.Sprintf("t=%.3f", float64(time.Now().UnixMilli())/1000), ""
	for later <= read { // for a few milliseconds
		b.exchange(t, "GET /v1/orders HTTP/1.1\r\nHost: x\r\n\r\n")
		later = received(t, starts)
	}
	_, err = io.WriteString(conn, "{}")
	require.NoError(t, err)
	require.LessOrEqual(t, received(t, starts), read)
}

// TestNginx_TimesARequestWhenItReadsIt however long ago it was sent: nginx that gets no processor
// can't know. The campaign excuses what only the client knows to be older.
func TestNginx_TimesARequestWhenItReadsIt(t *testing.T) {
	t.Parallel()
	b, starts := setupNginx(t), make(chan string, 1)
	b.replica(t, API1, func(_ http.ResponseWriter, r *http.Request) { starts <- r.Header.Get("X-Request-Start") })
	require.NoError(t, b.driver.control(t.Context(), "pause", Nginx))
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", b.addr)
	require.NoError(t, err)
	defer func() { _ = conn.Close() }()
	_, err = io.WriteString(conn, "GET /v1/orders HTTP/1.1\r\nHost: x\r\n\r\n")
	require.NoError(t, err)
	later := time.Now().Add(5 * time.Millisecond)
	require.NoError(t, wait.Pause(t.Context(), time.Until(later)))
	require.NoError(t, b.driver.control(t.Context(), "resume", Nginx))
	require.GreaterOrEqual(t, received(t, starts), fmt.Sprintf("t=%.3f", float64(later.UnixMilli())/1000))
}

func received(t *testing.T, from <-chan string) string {
	t.Helper()
	select {
	case value := <-from:
		return value
	case <-time.After(testTimeout):
		require.FailNow(t, "no replica got the request")
		return ""
	}
}

func TestNginx_LeavesAnOverloadedReplicaItsAnswer(t *testing.T) {
	t.Parallel()
	b := setupNginx(t)
	var asked atomic.Int64
	overloaded := func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		w.Header().Set("Retry-After", "1")
		w.WriteHeader(http.StatusServiceUnavailable)
		_, _ = io.WriteString(w, `{"code":"overloaded"}`)
	}
	b.replica(t, API1, overloaded)
	b.replica(t, API2, overloaded)
	const sent = 20
	for range sent {
		resp, body := b.exchange(t, "POST /v1/orders HTTP/1.1\r\nHost: x\r\nIdempotency-Key: k\r\nContent-Length: 0\r\n\r\n")
		require.Equal(t, 503, resp.StatusCode)
		require.JSONEq(t, `{"code":"overloaded"}`, string(body), "neither replica is called dead")
	}
	require.EqualValues(t, sent, asked.Load(), "an answer is not passed on")
}

// busyReplicas take a request each time that arrived is read, and answer all once finish is closed.
// stop ends one of them.
func (b nginxBundle) busyReplicas(t *testing.T) (arrived, finish chan bool, stop func()) {
	t.Helper()
	arrived, finish = make(chan bool, 4), make(chan bool)
	busy := func(http.ResponseWriter, *http.Request) {
		arrived <- true
		<-finish
	}
	stop = b.replica(t, API1, busy)
	b.replica(t, API2, busy)
	return arrived, finish, stop
}

func TestNginx_BoundsTheRequestsWithAKey(t *testing.T) {
	t.Parallel()
	b := setupNginx(t, [2]string{"limit_conn quick_key 384;", "limit_conn quick_key 1;"})
	arrived, finish, _ := b.busyReplicas(t)
	request := func(credentials string) string {
		return "GET /v1/products HTTP/1.1\r\nHost: x\r\nAuthorization: " + credentials + "\r\n\r\n"
	}
	var running sync.WaitGroup
	for _, credentials := range []string{"Bearer one", "Bearer other"} {
		running.Go(func() {
			resp, _ := b.exchange(t, request(credentials))
			require.Equal(t, 200, resp.StatusCode)
		})
		<-arrived
	}
	for _, credentials := range []string{"Bearer one", "bearer one", "BEARER   one", "Bearer one\t", "\tBearer one "} {
		for _, method := range []string{"GET", "PUT"} { // without an idempotency key, too
			resp, body := b.exchange(t, strings.Replace(request(credentials), "GET", method, 1))
			requireProblem(t, method+" "+credentials, resp, body, 503, "overloaded")
			require.Equal(t, "1", resp.Header.Get("Retry-After"))
		}
	}
	close(finish)
	running.Wait()
}

// TestNginx_BoundsTheChangesWithoutAKey of one account to less than their places: those of others
// find one.
func TestNginx_BoundsTheChangesWithoutAKey(t *testing.T) {
	t.Parallel()
	b := setupNginx(t, [2]string{"limit_conn once_key 96;", "limit_conn once_key 1;"})
	arrived, finish, _ := b.busyReplicas(t)
	var running sync.WaitGroup
	request := func(line, key string) string {
		return line + " HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " + key + "\r\n\r\n"
	}
	for _, r := range []string{request("PUT /v1/products/x", "one"), request("PUT /v1/products/x", "other"), request("GET /v1/products", "one")} {
		running.Go(func() {
			resp, _ := b.exchange(t, r)
			require.Equal(t, 200, resp.StatusCode)
		})
		<-arrived
	}
	resp, body := b.exchange(t, request("PUT /v1/products/x", "one"))
	requireProblem(t, "PUT", resp, body, 503, "overloaded")
	close(finish)
	running.Wait()
}

// TestNginx_BoundsTheRequestsOfAnAddress, which makes up a key for each.
func TestNginx_BoundsTheRequestsOfAnAddress(t *testing.T) {
	t.Parallel()
	b := setupNginx(t, [2]string{"limit_conn quick_address 384;", "limit_conn quick_address 1;"},
		[2]string{"limit_conn slow_address 512;", "limit_conn slow_address 1;"})
	arrived, finish, _ := b.busyReplicas(t)
	var running sync.WaitGroup
	for _, path := range []string{"/v1/products", "/v1/orders/x/payments"} {
		request := func(key string) string {
			return "GET " + path + " HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " + key + "\r\n\r\n"
		}
		for _, from := range []string{"127.0.0.2", "127.0.0.3"} {
			running.Go(func() {
				resp, _ := b.exchangeFrom(t, from, request("one"))
				require.Equal(t, 200, resp.StatusCode)
			})
			<-arrived
		}
		resp, body := b.exchangeFrom(t, "127.0.0.2", request("other"))
		requireProblem(t, path, resp, body, 503, "overloaded")
	}
	close(finish)
	running.Wait()
}

// TestNginx_LogsNoCredentials, also where they are longer than it counts.
func TestNginx_LogsNoCredentials(t *testing.T) {
	t.Parallel()
	b := setupNginx(t)
	b.replica(t, API1, func(http.ResponseWriter, *http.Request) {})
	b.replica(t, API2, func(http.ResponseWriter, *http.Request) {})
	secret := strings.Repeat("s3cret", 100)
	for _, scheme := range []string{"Bearer ", "Basic ", "", "Bearer two "} {
		b.exchange(t, "GET /v1/products HTTP/1.1\r\nHost: x\r\nAuthorization: "+scheme+secret+"\r\n\r\n")
	}
	log, err := os.ReadFile(b.driver.logPath(Nginx))
	require.NoError(t, err)
	require.NotContains(t, string(log), "s3cret")
}

// TestNginx_LogsNoCardNumber of a request that it fails itself: the log has enough to find it by.
// The level is the one of deploy/nginx/nginx.conf.
func TestNginx_LogsNoCardNumber(t *testing.T) {
	t.Parallel()
	b := setupNginx(t, [2]string{"error_log stderr ", "error_log errors.log "}, [2]string{"limit_conn quick_key 384;", "limit_conn quick_key 1;"})
	const card = "4242424242424242"
	request := "GET /v1/products/" + card + "?cursor=" + card + " HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nX-Request-ID: %s\r\n\r\n"
	send := func(key, id string, status int) {
		resp, _ := b.exchange(t, fmt.Sprintf(request, key, id))
		require.Equal(t, status, resp.StatusCode)
	}
	// A key each: nginx may still count a request when its answer is here.
	send("first", "no-replica", 502)
	send("second", card, 502)
	send("third", "4242-4242-4242-4242", 502)
	arrived, finish, stop := b.busyReplicas(t)
	var running sync.WaitGroup
	running.Go(func() { send("one", "answered", 200) })
	<-arrived
	send("one", "too-many", 503)
	close(finish)
	running.Wait()
	stop()
	dir := b.driver.known(Nginx).Dir
	require.EventuallyWithT(t, func(t *assert.CollectT) { // nginx logs a request after it has answered
		failures, err := os.ReadFile(filepath.Join(dir, failureLog))
		require.NoError(t, err)
		found := map[string]int{}
		for line := range strings.Lines(string(failures)) {
			var failure struct {
				ID     string `json:"request_id"`
				Status int
			}
			require.NoError(t, json.Unmarshal([]byte(line), &failure), line)
			found[failure.ID] = failure.Status
		}
		require.Equal(t, map[string]int{"no-replica": 502, "(a number)": 502, "too-many": 503}, found)
	}, 10*time.Second, 20*time.Millisecond)
	for _, name := range []string{"errors.log", failureLog} {
		log, err := os.ReadFile(filepath.Join(dir, name))
		require.NoError(t, err)
		require.NotContains(t, string(log), "4242", name)
	}
}

// TestNginx_HoldsBodiesThatTheAPIAccepts, and only a little more.
func TestNginx_HoldsBodiesThatTheAPIAccepts(t *testing.T) {
	t.Parallel()
	b := setupNginx(t)
	read := func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		_, _ = fmt.Fprint(w, len(body))
	}
	b.replica(t, API1, read)
	b.replica(t, API2, read)
	for size, status := range map[int]int{64 << 10: 200, 65 << 10: 200, 65<<10 + 1: 413} {
		resp, body := b.exchange(t, fmt.Sprintf("POST /a HTTP/1.1\r\nHost: x\r\nIdempotency-Key: k\r\nContent-Length: %d\r\n\r\n%s", size, strings.Repeat("x", size)))
		require.Equal(t, status, resp.StatusCode, size)
		if status == 200 {
			require.Equal(t, strconv.Itoa(size), string(body))
		}
	}
}

// unread sends requests, from addresses and with API keys in turn, whose answers are never read.
func (b nginxBundle) unread(t *testing.T, n int, path string, addresses []string, keys ...string) {
	t.Helper()
	for i := range n {
		conn, err := slowreader.Ask(t.Context(), addresses[i%len(addresses)], b.addr, path, keys[i%len(keys)])
		require.NoError(t, err)
		t.Cleanup(func() { _ = conn.Close() })
	}
}

// TestNginx_ClientsThatDoNotReadHoldNoPlaceOfOthers: strangers ask for pages, four accounts for
// lists, and four for large orders. The orders come in waves, because so many at once would be more
// than the replicas answer at once.
func TestNginx_ClientsThatDoNotReadHoldNoPlaceOfOthers(t *testing.T) {
	t.Parallel()
	b := setupNginx(t)
	const script, list, order, waves, wave = "/docs/script.js", "/v1/orders", "/v1/orders/large", 4, 150
	var pages, lists, orders atomic.Int64 // that were asked for; orders that nginx has whole
	answer := func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case script:
			pages.Add(1)
			_, _ = w.Write(make([]byte, 400<<10))
		case list:
			lists.Add(1)
			_, _ = w.Write(make([]byte, 2<<20))
		case order:
			_, _ = w.Write(make([]byte, 64<<10))
			orders.Add(1)
		}
	}
	b.replica(t, API1, answer)
	b.replica(t, API2, answer)
	strangers, clients := []string{"127.0.0.2", "127.0.0.3"}, []string{"127.0.0.5", "127.0.0.6"}
	b.unread(t, 700, script, strangers, "")
	b.unread(t, 700, list, strangers, "one", "two", "three", "four")
	for n := range waves {
		b.unread(t, wave, order, clients, "five", "six", "seven", "eight")
		require.Eventually(t, func() bool { return orders.Load() == int64(n+1)*wave }, testTimeout, 10*time.Millisecond, "wave %d", n)
	}
	require.EqualValues(t, 2*16, pages.Load())
	require.EqualValues(t, 4*48, lists.Load())
	for _, line := range []string{"POST /v1/orders", "GET /v1/orders", "GET /v1/orders/small", "GET /v1/products", "POST /v1/webhooks/psp", "GET /docs"} {
		for range 20 {
			resp, body := b.exchangeFrom(t, "127.0.0.4", line+" HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer honest\r\nIdempotency-Key: k\r\nContent-Length: 0\r\n\r\n")
			require.Equal(t, 200, resp.StatusCode, "%s: %.200s", line, body)
		}
	}
}
