package main

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/oncepay/oncepay/internal/app"
	"github.com/oncepay/oncepay/internal/testenv"
	"github.com/oncepay/oncepay/loadtest/faults/verify"
)

func TestMain(m *testing.M) {
	testenv.Main(m,
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.updateServerDate.func1"),    // it never ends
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.(*workerPool).Start.func2"), // it looks every ten seconds whether to end
	)
}

// patience bounds every wait of these tests.
const patience = 30 * time.Second

// The systems that are more than none.
var protecting = []string{"fiber", "fiber-lock", "setnx"}

// shop is a handler that counts, and answers with the count.
type shop struct {
	executions atomic.Int64
	keys       sync.Map
	answer     func(w http.ResponseWriter, n int64) // nil: 201
	enter      chan struct{}                        // if not nil, told of each execution
	leave      chan struct{}                        // if not nil, closed when they may go on
}

func (s *shop) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	n := s.executions.Add(1)
	s.keys.Store(r.Header.Get(headerKey), true)
	if s.enter != nil {
		s.enter <- struct{}{}
		<-s.leave
	}
	if s.answer != nil {
		s.answer(w, n)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Location", "/v1/orders/1")
	w.WriteHeader(http.StatusCreated)
	_ = json.NewEncoder(w).Encode(map[string]int64{"execution": n})
}

// replicas are two of a system on one Redis and one shop.
func replicas(t *testing.T, system, redisURL string, handler http.Handler) [2]string {
	t.Helper()
	var urls [2]string
	for i := range urls {
		client, err := openRedis(redisURL)
		require.NoError(t, err)
		server := httptest.NewServer(systems[system](client, everyRequest(handler)))
		t.Cleanup(func() {
			server.Close()
			_ = client.Close()
		})
		urls[i] = server.URL
	}
	return urls
}

type answer struct {
	status int
	header http.Header
	body   string
}

func post(t *testing.T, url, account, key, body string) answer {
	t.Helper()
	a, err := try(url, account, key, body)
	require.NoError(t, err)
	return a
}

func try(url, account, key, body string) (answer, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	q, err := http.NewRequestWithContext(ctx, http.MethodPost, url+"/v1/orders", strings.NewReader(body))
	if err != nil {
		return answer{}, err
	}
	q.Header = http.Header{"Authorization": {"Bearer " + account}, "Content-Type": {"application/json"}, headerKey: {key}}
	a, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(q)
	if err != nil {
		return answer{}, err
	}
	defer func() { _ = a.Body.Close() }()
	text, err := io.ReadAll(a.Body)
	return answer{a.StatusCode, a.Header, string(text)}, err
}

func TestNone_ExecutesEachRequestUnderAKeyOfItsOwn(t *testing.T) {
	t.Parallel()
	s := &shop{}
	urls := replicas(t, "none", testenv.Redis(t), s)
	require.NotEqual(t, post(t, urls[0], "a", "k", "{}").body, post(t, urls[1], "a", "k", "{}").body)
	keys := 0
	s.keys.Range(func(key, _ any) bool {
		keys++
		require.True(t, strings.HasPrefix(key.(string), "k"+verify.ExecutionMark), key)
		return true
	})
	require.Equal(t, 2, keys)
}

// The systems do what they promise while nothing fails: they are put together well.
func TestFronts_ReplayByteForByteAtEitherReplica(t *testing.T) {
	t.Parallel()
	for _, system := range protecting {
		t.Run(system, func(t *testing.T) {
			t.Parallel()
			s := &shop{}
			urls := replicas(t, system, testenv.Redis(t), s)
			first := post(t, urls[0], "a", "k", `{"x":1}`)
			require.Equal(t, http.StatusCreated, first.status, first.body)
			for _, url := range urls {
				again := post(t, url, "a", "k", `{"x":1}`)
				require.Equal(t, first.status, again.status)
				require.Equal(t, first.body, again.body)
				for _, name := range []string{"Content-Type", "Location"} {
					require.Equal(t, first.header.Values(name), again.header.Values(name))
				}
			}
			require.EqualValues(t, 1, s.executions.Load())
		})
	}
}

func TestFronts_KeepNoAnswerThatAsksForARetry(t *testing.T) {
	t.Parallel()
	for _, system := range protecting {
		for name, once := range map[string]func(http.ResponseWriter){
			"503": func(w http.ResponseWriter) { w.WriteHeader(http.StatusServiceUnavailable) },
			"409": func(w http.ResponseWriter) {
				w.Header().Set("Retry-After", "7")
				w.WriteHeader(http.StatusConflict)
			},
		} {
			t.Run(system+" "+name, func(t *testing.T) {
				t.Parallel()
				s := &shop{answer: func(w http.ResponseWriter, n int64) {
					if n == 1 {
						once(w)
					}
					_, _ = io.WriteString(w, "from the handler")
				}}
				urls := replicas(t, system, testenv.Redis(t), s)
				first := post(t, urls[0], "a", "k", "{}")
				require.Equal(t, "from the handler", first.body)
				require.GreaterOrEqual(t, first.status, http.StatusConflict)
				require.Equal(t, http.StatusOK, post(t, urls[1], "a", "k", "{}").status)
				require.EqualValues(t, 2, s.executions.Load())
			})
		}
	}
}

// What sets the systems apart, without any fault: a second request while the first one is executed.
func TestFronts_RaceAtTwoReplicas(t *testing.T) {
	t.Parallel()
	for system, want := range map[string]struct {
		executions int64
		second     int // status
	}{
		"fiber":      {2, http.StatusCreated}, // its lock is of the process
		"fiber-lock": {1, http.StatusCreated}, // waits for the first one
		"setnx":      {1, http.StatusConflict},
	} {
		t.Run(system, func(t *testing.T) {
			t.Parallel()
			s := &shop{enter: make(chan struct{}, 2), leave: make(chan struct{})}
			urls := replicas(t, system, testenv.Redis(t), s)
			first, second := make(chan answer, 1), make(chan answer, 1)
			ask := func(url string, to chan<- answer) {
				a, _ := try(url, "a", "k", "{}") // one that failed has no status
				to <- a
			}
			go ask(urls[0], first)
			<-s.enter
			go ask(urls[1], second)
			select { // long enough for a second execution to begin
			case <-s.enter:
			case <-time.After(time.Second):
			}
			close(s.leave)
			require.Equal(t, http.StatusCreated, (<-first).status)
			require.Equal(t, want.second, (<-second).status)
			require.Equal(t, want.executions, s.executions.Load())
		})
	}
}

func TestFronts_KnowAccountsAndRequests(t *testing.T) {
	t.Parallel()
	for system, apart := range map[string]bool{"fiber": false, "fiber-lock": false, "setnx": true} {
		t.Run(system, func(t *testing.T) {
			t.Parallel()
			urls := replicas(t, system, testenv.Redis(t), &shop{})
			first := post(t, urls[0], "a", "k", `{"x":1}`)
			require.Equal(t, first.body, post(t, urls[0], "a", "k", `{"x":2}`).body, "none of them looks at the request")
			require.Equal(t, apart, first.body != post(t, urls[0], "b", "k", `{"x":1}`).body)
		})
	}
}

func TestFronts_HandleAKeyWhoseOwnerDied(t *testing.T) {
	t.Parallel()
	redisURL := testenv.Redis(t)
	client, err := openRedis(redisURL)
	require.NoError(t, err)
	t.Cleanup(func() { _ = client.Close() })
	s := &shop{}
	urls := replicas(t, "setnx", redisURL, s)
	require.Equal(t, http.StatusCreated, post(t, urls[0], "a", "other", "{}").status)
	names, err := client.Keys(t.Context(), "setnx:*:other").Result()
	require.NoError(t, err)
	require.Len(t, names, 1)
	name := strings.TrimSuffix(names[0], "other") + "k"
	require.NoError(t, client.Set(t.Context(), name, processing, processingTTL).Err())
	require.Equal(t, http.StatusConflict, post(t, urls[1], "a", "k", "{}").status, "until its time to live is over")
	require.NoError(t, client.Del(t.Context(), name).Err())
	require.Equal(t, http.StatusCreated, post(t, urls[1], "a", "k", "{}").status)
}

func TestFronts_ExecuteNothingWithoutRedis(t *testing.T) {
	t.Parallel()
	for _, system := range protecting {
		t.Run(system, func(t *testing.T) {
			t.Parallel()
			s := &shop{}
			urls := replicas(t, system, "redis://127.0.0.1:1/0", s)
			refused := post(t, urls[0], "a", "k", "{}")
			require.Equal(t, http.StatusServiceUnavailable, refused.status)
			require.Equal(t, "1", refused.header.Get("Retry-After"))
			require.Contains(t, refused.body, unavailable.Code)
			require.Zero(t, s.executions.Load())
		})
	}
}

// The whole program: oncepay's handlers and database, and none of its idempotency.
func TestServe_StartsAndStops(t *testing.T) {
	t.Parallel()
	environ := []string{"ENVIRONMENT=development", "SYSTEM=none", "HTTP_ADDR=" + freeAddr(t), "OPS_ADDR=127.0.0.1:0",
		"DATABASE_URL=" + testenv.Postgres(t), "REDIS_URL=" + testenv.Redis(t), "PSP_URL=http://127.0.0.1:1"}
	cfg, err := app.ParseConfig(environ)
	require.NoError(t, err)
	log := cfg.NewLogger(io.Discard)
	require.NoError(t, app.Seed(t.Context(), cfg, log))
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- run(ctx, []string{"serve"}, environ, io.Discard) }()
	t.Cleanup(func() {
		stop()
		require.NoError(t, <-ended)
	})
	awaitListener(t, cfg.HTTPAddr)

	url := "http://" + cfg.HTTPAddr
	database, err := pgx.Connect(t.Context(), cfg.DatabaseURL)
	require.NoError(t, err)
	t.Cleanup(func() { _ = database.Close(context.Background()) })
	var customer string
	require.NoError(t, database.QueryRow(t.Context(), `INSERT INTO customers (id, account_id, name, email, created_at, updated_at)
		SELECT gen_random_uuid(), account_id, 'Ada', 'ada@example.com', now(), now() FROM api_keys WHERE hash = sha256('sk_test_demo') RETURNING id::text`).Scan(&customer))
	order := `{"customer_id":"` + customer + `","items":[{"sku":"tee-black","quantity":1}]}`
	for range 2 {
		placed := post(t, url, "sk_test_demo", "same", order)
		require.Equal(t, http.StatusCreated, placed.status, placed.body)
	}
	var orders, keys int
	require.NoError(t, database.QueryRow(t.Context(), `SELECT (SELECT count(*) FROM orders),
		(SELECT count(*) FROM idempotency_keys WHERE key LIKE 'same~%' AND status = 'completed')`).Scan(&orders, &keys))
	require.Equal(t, []int{2, 2}, []int{orders, keys}, "two orders, each under a key of its own")
}

func TestRun_RefusesWrongUsage(t *testing.T) {
	t.Parallel()
	require.ErrorContains(t, run(t.Context(), []string{"migrate"}, nil, io.Discard), "serve")
	_, err := choose(t.Context(), []string{"SYSTEM=magic"}, "", nil)
	require.ErrorContains(t, err, "[fiber fiber-lock none setnx authority]")
}

func freeAddr(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, listener.Close())
	return listener.Addr().String()
}

func awaitListener(t *testing.T, addr string) {
	t.Helper()
	require.Eventually(t, func() bool {
		conn, err := net.DialTimeout("tcp", addr, time.Second)
		if err != nil {
			return false
		}
		return conn.Close() == nil
	}, patience, 20*time.Millisecond)
}
