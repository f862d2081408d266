package pspsim

import (
	"context"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// serve runs a provider of its own listener; stop ends it and returns what Serve returned.
func serve(t *testing.T, drain time.Duration) (b *testBundle, stop func() error) {
	b = setup(t)
	b.sim.drain = drain
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	b.url = "http://" + listener.Addr().String()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- b.sim.Serve(ctx, listener) }()
	return b, func() error {
		cancel()
		select {
		case err := <-done:
			return err
		case <-time.After(10 * time.Second):
			t.Fatal("Serve does not return")
			return nil
		}
	}
}

// charged waits until the audit list shows a charge.
func (b *testBundle) charged() {
	b.t.Helper()
	require.Eventually(b.t, func() bool { return len(b.list("/v1/charges")) == 1 }, 5*time.Second, 5*time.Millisecond)
}

func TestServer_StopCutsSlowAnswers(t *testing.T) {
	t.Parallel()
	b, stop := serve(t, 50*time.Millisecond)
	answered := make(chan error, 1)
	go func() {
		_, _, err := b.post(t.Context(), "/v1/charges", "key-1", chargeOf("tok_slow_60s"))
		answered <- err
	}()
	b.charged()
	begin := time.Now()
	require.NoError(t, stop())
	require.Less(t, time.Since(begin), 5*time.Second)
	require.ErrorContains(t, <-answered, "EOF")
	require.Len(t, b.crash().list("/v1/charges"), 1, "the charge is real")
}

func TestServer_StopLetsRequestsFinish(t *testing.T) {
	t.Parallel()
	b, stop := serve(t, 10*time.Second)
	answered := make(chan error, 1)
	go func() {
		_, _, err := b.post(t.Context(), "/v1/charges", "key-1", chargeOf("tok_slow_1s"))
		answered <- err
	}()
	b.charged()
	require.NoError(t, stop())
	require.NoError(t, <-answered)
}

func TestAnswer_SlowEndsWhenTheConnectionCloses(t *testing.T) {
	t.Parallel()
	b, stop := serve(t, time.Minute)
	ctx, hangUp := context.WithCancel(t.Context())
	answered := make(chan error, 1)
	go func() {
		_, _, err := b.post(ctx, "/v1/charges", "key-1", chargeOf("tok_slow_60s"))
		answered <- err
	}()
	b.charged()
	hangUp()
	require.ErrorIs(t, <-answered, context.Canceled)
	require.NoError(t, stop(), "within ten seconds, though the drain would wait for a minute")
}

// TestServer_AnswersNoDomain, whose name may point here by DNS rebinding.
func TestServer_AnswersNoDomain(t *testing.T) {
	t.Parallel()
	b, stop := serve(t, time.Second)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, b.url+"/v1/charges", nil)
	require.NoError(t, err)
	r.Host = "evil.example"
	answer, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	require.NoError(t, answer.Body.Close())
	require.Equal(t, http.StatusMisdirectedRequest, answer.StatusCode)
	require.NoError(t, stop())
}
