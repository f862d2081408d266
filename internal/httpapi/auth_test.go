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

func TestNetworkOf_IsTheAddressOrItsNetwork(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]string{
		"192.0.2.1": "192.0.2.1", "2001:db8::1": "2001:db8::/64", "2001:db8::ffff": "2001:db8::/64", "": "",
	} {
		require.Equal(t, want, networkOf(address))
	}
}
