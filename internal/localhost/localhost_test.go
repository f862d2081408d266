package localhost

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestGuard_RefusesADomain(t *testing.T) {
	t.Parallel()
	server := Guard(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	for host, status := range map[string]int{
		"localhost:8090": 200, "LOCALHOST": 200, "127.0.0.1:8090": 200, "127.0.0.1": 200, "[::1]:8090": 200, "[::1]": 200, "pspsim:8090": 200,
		"evil.example:8090": 421, "evil.example": 421, "127.0.0.1.evil.example": 421, "localhost.": 421, "[::1].evil.example:8090": 421,
	} {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.Host = host
		answer := httptest.NewRecorder()
		server.ServeHTTP(answer, r)
		require.Equal(t, status, answer.Code, host)
	}
}
