package httpapi

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestBearerToken_IsReadOnce(t *testing.T) {
	t.Parallel()
	for header, token := range map[string]string{
		"Bearer sk_test": "sk_test", "bearer sk_test": "sk_test", "BEARER  sk_test ": "sk_test",
		"": "", "Bearer": "", "Bearer ": "", "Bearer\tsk_test": "", "Basic sk_test": "", "sk_test": "",
	} {
		got, ok := bearerToken(http.Header{"Authorization": {header}})
		require.Equal(t, token != "", ok, header)
		if ok {
			require.Equal(t, token, got)
		}
	}
	_, ok := bearerToken(http.Header{"Authorization": {"Bearer a", "Bearer b"}})
	require.False(t, ok, "sent twice")
}
