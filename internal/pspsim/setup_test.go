package pspsim

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// testBundle is a provider behind a real HTTP server.
type testBundle struct {
	t       *testing.T
	sim     *Server
	url     string
	journal string
	client  *http.Client
}

func setup(t *testing.T) *testBundle {
	t.Helper()
	return open(t, filepath.Join(t.TempDir(), "journal"))
}

func open(t *testing.T, journal string) *testBundle {
	t.Helper()
	sim, err := New(journal, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	server := httptest.NewUnstartedServer(sim)
	server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelInfo)
	server.Start()
	// One connection per request, so that net/http has no reason to resend.
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	t.Cleanup(func() {
		server.Close()
		_ = sim.Close() // a test may have closed it
	})
	return &testBundle{t: t, sim: sim, url: server.URL, journal: journal, client: client}
}

// crash starts a second provider on the journal as it is on disk now, which is all that a kill -9
// of the first would leave.
func (b *testBundle) crash() *testBundle {
	b.t.Helper()
	raw, err := os.ReadFile(b.journal)
	require.NoError(b.t, err)
	path := filepath.Join(b.t.TempDir(), "journal")
	require.NoError(b.t, os.WriteFile(path, raw, 0o600))
	return open(b.t, path)
}

// answer is any body of the provider.
type answer struct {
	entry
	Problem refusal `json:"error"`
}

func (b *testBundle) post(ctx context.Context, path, key, body string) (int, answer, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, b.url+path, strings.NewReader(body))
	if err != nil {
		return 0, answer{}, err
	}
	if key != "" {
		request.Header.Set("Idempotency-Key", key)
	}
	response, err := b.client.Do(request)
	if err != nil {
		return 0, answer{}, err
	}
	defer response.Body.Close()
	var a answer
	return response.StatusCode, a, json.UnmarshalRead(response.Body, &a)
}

func (b *testBundle) mustPost(path, key, body string) (int, answer) {
	b.t.Helper()
	status, a, err := b.post(b.t.Context(), path, key, body)
	require.NoError(b.t, err)
	return status, a
}

func (b *testBundle) charge(key, token string) (int, answer) {
	b.t.Helper()
	return b.mustPost("/v1/charges", key, chargeOf(token))
}

func (b *testBundle) refund(key, charge string, amount int) (int, answer) {
	b.t.Helper()
	return b.mustPost("/v1/refunds", key, refundOf(charge, amount, "USD"))
}

func (b *testBundle) list(path string) []entry {
	b.t.Helper()
	response, err := b.client.Get(b.url + path)
	require.NoError(b.t, err)
	defer response.Body.Close()
	require.Equal(b.t, http.StatusOK, response.StatusCode)
	raw, err := io.ReadAll(response.Body)
	require.NoError(b.t, err)
	var listed struct {
		Data []entry `json:"data"`
	}
	require.NoError(b.t, json.Unmarshal(raw, &listed))
	require.NotNil(b.t, listed.Data, "an empty list is [], not null")
	return listed.Data
}

func chargeOf(token string) string {
	return fmt.Sprintf(`{"amount":4200,"currency":"USD","reference":"order-1","source":%q}`, token)
}

func refundOf(charge string, amount int, currency string) string {
	return fmt.Sprintf(`{"charge":%q,"amount":%d,"currency":%q,"reference":"refund-1"}`, charge, amount, currency)
}
