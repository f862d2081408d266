package app

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestASlowBodyIsBrokenOff(t *testing.T) {
	t.Parallel()
	failed := make(chan error, 1)
	server := httptest.NewServer(boundBody(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, err := io.ReadAll(r.Body)
		failed <- err
	}), 50*time.Millisecond))
	t.Cleanup(server.Close)
	conn, err := net.Dial("tcp", server.Listener.Addr().String())
	require.NoError(t, err)
	defer func() { require.NoError(t, conn.Close()) }()
	_, err = io.WriteString(conn, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{")
	require.NoError(t, err)
	require.ErrorContains(t, <-failed, "timeout")
}

func TestASlowHandlerIsNotBrokenOff(t *testing.T) {
	t.Parallel()
	const limit = 50 * time.Millisecond
	server := httptest.NewServer(boundBody(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, err := io.ReadAll(r.Body)
		if err != nil {
			w.WriteHeader(http.StatusBadRequest)
		}
		select {
		case <-r.Context().Done():
			w.WriteHeader(http.StatusInternalServerError)
		case <-time.After(4 * limit):
		}
	}), limit))
	t.Cleanup(server.Close)
	got, err := request(context.Background(), http.MethodPost, server.URL, "", "a body")
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, got.status)
}
