package main

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/internal/pspsim"
	"github.com/oncepay/oncepay/internal/testenv"
)

// rollout is replicas behind a Service of a cluster: it sends each request to one of its replicas,
// and never a second time to another one.
type rollout struct {
	t       *testing.T
	environ []string

	mu       sync.RWMutex // held for reading until the request was sent to a chosen replica
	replicas []*replica
	next     atomic.Int64
}

// replica is a process.
type replica struct {
	cmd    *exec.Cmd
	url    string
	closed chan struct{} // when it has closed its log, which is read to the end
}

func setupRollout(t *testing.T) *rollout {
	t.Helper()
	provider, err := pspsim.New(filepath.Join(t.TempDir(), "journal"), slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	psp := httptest.NewServer(provider)
	t.Cleanup(func() {
		psp.Close()
		require.NoError(t, provider.Close())
	})
	s := &rollout{t: t, environ: []string{"ENVIRONMENT=development", "DATABASE_URL=" + testenv.Postgres(t), "REDIS_URL=" + testenv.Redis(t),
		"PSP_URL=" + psp.URL, "HTTP_ADDR=127.0.0.1:0", "OPS_ADDR=127.0.0.1:0"}}
	_, err = oncepay(t, s.environ, "seed")
	require.NoError(t, err)
	return s
}

// add starts a replica, and sends it requests once it is ready.
func (s *rollout) add() {
	s.t.Helper()
	cmd := program(s.t, s.environ, "serve")
	out, err := cmd.StdoutPipe()
	require.NoError(s.t, err)
	require.NoError(s.t, cmd.Start())
	logs := json.NewDecoder(out)
	added := &replica{cmd: cmd, url: "http://" + awaitLine(s.t, logs, "serving")["addr"], closed: make(chan struct{})}
	go func() {
		_, _ = io.Copy(io.Discard, out)
		close(added.closed)
	}()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.replicas = append(s.replicas, added)
}

// removeOldest ends a replica as a cluster does: first it gets no new requests, which takes as long
// as preStop lasts, and then SIGTERM.
func (s *rollout) removeOldest() {
	s.t.Helper()
	s.mu.Lock()
	oldest := s.replicas[0]
	s.replicas = slices.Delete(s.replicas, 0, 1)
	s.mu.Unlock()
	require.NoError(s.t, oldest.cmd.Process.Signal(syscall.SIGTERM))
	<-oldest.closed
	require.NoError(s.t, oldest.cmd.Wait(), "exit 0")
}

// post sends a request once, and returns its status and body. A request that was only written when
// its replica is told to end is answered: the replica gives notice.
func (s *rollout) post(client *http.Client, path, body string) (int, []byte, error) {
	s.mu.RLock()
	sent := sync.OnceFunc(s.mu.RUnlock)
	defer sent()
	ctx := httptrace.WithClientTrace(context.Background(), &httptrace.ClientTrace{WroteRequest: func(httptrace.WroteRequestInfo) { sent() }})
	url := s.replicas[int(s.next.Add(1))%len(s.replicas)].url
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url+path, strings.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	request.GetBody = nil // so that net/http does not send it a second time
	request.Header = http.Header{"Authorization": {"Bearer sk_test_demo"}, "Content-Type": {"application/json"}, "Idempotency-Key": {uuid.NewString()}}
	response, err := client.Do(request)
	if err != nil {
		return 0, nil, err
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	return response.StatusCode, text, err
}

// shop places and pays orders until stop is closed. Every answer has to be 201.
func (s *rollout) shop(customer string, stop <-chan struct{}, paid *atomic.Int64) error {
	client := &http.Client{Transport: &http.Transport{}, Timeout: patience}
	defer client.CloseIdleConnections()
	for {
		select {
		case <-stop:
			return nil
		default:
		}
		var order struct{ ID string }
		if err := s.create(client, "/v1/orders", `{"customer_id":"`+customer+`","items":[{"sku":"tee-black","quantity":1}]}`, &order); err != nil {
			return err
		}
		pay := `{"method":{"type":"card","token":"tok_slow_1s"}}` // it is under way when its replica is told to end
		if err := s.create(client, "/v1/orders/"+order.ID+"/payments", pay, &order); err != nil {
			return err
		}
		paid.Add(1)
	}
}

func (s *rollout) create(client *http.Client, path, body string, made any) error {
	status, text, err := s.post(client, path, body)
	if err != nil {
		return err
	}
	if status != http.StatusCreated {
		return &unexpected{status, string(text)}
	}
	return json.Unmarshal(text, made)
}

type unexpected struct {
	status int
	body   string
}

func (e *unexpected) Error() string { return strconv.Itoa(e.status) + " " + e.body }

// TestServe_RollsOutWithoutAFailedRequest replaces both replicas, each by a new one, while clients
// that never retry order and pay.
func TestServe_RollsOutWithoutAFailedRequest(t *testing.T) {
	t.Parallel()
	s := setupRollout(t)
	s.add()
	s.add()
	var customer struct{ ID string }
	require.NoError(t, s.create(http.DefaultClient, "/v1/customers", `{"name":"Ada","email":"ada@example.com"}`, &customer))
	stop, ended, paid := make(chan struct{}), make(chan error), &atomic.Int64{}
	const shoppers = 8
	for range shoppers {
		go func() { ended <- s.shop(customer.ID, stop, paid) }()
	}
	for range 2 {
		before := paid.Load()
		s.add()
		require.Eventually(t, func() bool { return paid.Load() >= before+shoppers }, patience, 10*time.Millisecond, "all shoppers go on")
		s.removeOldest()
	}
	close(stop)
	for range shoppers {
		require.NoError(t, <-ended)
	}
	require.GreaterOrEqual(t, paid.Load(), int64(2*shoppers))
}
