package conformance_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/oncepay/oncepay/loadtest/books"
	"github.com/oncepay/oncepay/loadtest/faults/conformance"
	"github.com/oncepay/oncepay/loadtest/faults/verify"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const problem = `{"type":"t","title":"t","status":%d,"detail":"d","code":"c","error":"e","request_id":"r"}`

// send has a server answer every request in one way.
func send(t *testing.T, answer func(w http.ResponseWriter)) (found []books.Violation) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-Request-ID", "r")
		answer(w)
	}))
	defer server.Close()
	found, err := conformance.Run(t.Context(), conformance.Config{
		Endpoints: map[string]string{"here": server.URL}, APIKey: "sk_test_demo", Requests: 400, Seed: 1,
		Customers: []string{"019aa4c2-7f5e-7000-8000-000000000000"},
	})
	require.NoError(t, err)
	return found
}

func refuse(status int) func(http.ResponseWriter) {
	return func(w http.ResponseWriter) {
		w.Header().Set("Content-Type", "application/problem+json")
		w.WriteHeader(status)
		_, _ = fmt.Fprintf(w, problem, status)
	}
}

func TestRun_TakesProblemsForAnswers(t *testing.T) {
	t.Parallel()
	found := send(t, refuse(http.StatusNotFound))
	require.Less(t, len(found), 70, "what net/http refuses")
	for _, v := range found {
		require.NotContains(t, v.Detail, ": 404 to", "net/http alone answers in another shape")
	}
}

func TestRun_FindsAnswersThatAreNotDescribed(t *testing.T) {
	t.Parallel()
	for want, answer := range map[string]func(http.ResponseWriter){
		"404 to":                     func(w http.ResponseWriter) { http.Error(w, "404 page not found", http.StatusNotFound) },
		"a server error":             refuse(http.StatusInternalServerError),
		"no WWW-Authenticate":        refuse(http.StatusUnauthorized),
		"no Allow":                   refuse(http.StatusMethodNotAllowed),
		"a valid request is refused": refuse(http.StatusBadRequest),
		"status is 404": func(w http.ResponseWriter) {
			w.Header().Set("Content-Type", "application/problem+json")
			w.WriteHeader(http.StatusConflict)
			_, _ = fmt.Fprintf(w, problem, http.StatusNotFound)
		},
		"no X-Request-ID": func(w http.ResponseWriter) { w.Header().Del("X-Request-ID"); refuse(http.StatusNotFound)(w) },
		"200 to": func(w http.ResponseWriter) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write([]byte(`{}`))
		},
	} {
		t.Run(want, func(t *testing.T) {
			t.Parallel()
			found := send(t, answer)
			require.Greater(t, len(found), 20)
			details := ""
			for _, v := range found {
				require.Equal(t, verify.AnswersConform, v.Rule)
				details += v.Detail + "\n"
			}
			require.Contains(t, details, want)
		})
	}
}
