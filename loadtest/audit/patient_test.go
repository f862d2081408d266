package audit_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/loadtest/audit"
)

func TestPatientReadsAgain(t *testing.T) {
	t.Parallel()
	var asked atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if asked.Add(1) <= 2 {
			w.Header().Set("Retry-After", "0")
			w.WriteHeader(http.StatusTooManyRequests)
		}
	}))
	defer server.Close()
	client := &http.Client{Transport: audit.Patient(http.DefaultTransport)}

	answer, err := client.Get(server.URL)
	require.NoError(t, err)
	require.NoError(t, answer.Body.Close())
	require.Equal(t, http.StatusOK, answer.StatusCode)
	require.EqualValues(t, 3, asked.Load())

	asked.Store(0)
	answer, err = client.Post(server.URL, "text/plain", strings.NewReader("x"))
	require.NoError(t, err)
	require.NoError(t, answer.Body.Close())
	require.Equal(t, http.StatusTooManyRequests, answer.StatusCode, "a write is the load's own business")
}
