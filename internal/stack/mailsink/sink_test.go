package mailsink

import (
	"context"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestSink_HasItsMailsAfterSIGKILL, and not the one that it was writing: that was not accepted.
func TestSink_HasItsMailsAfterSIGKILL(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "mails")
	sink, err := Open(path)
	require.NoError(t, err)
	for _, subject := range []string{"one", "two"} {
		require.NoError(t, sink.add(Mail{MessageID: subject + "@x", Subject: subject}))
	}
	require.NoError(t, sink.Close())
	file, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0o600)
	require.NoError(t, err)
	_, err = file.WriteString(`{"message_id":"three`)
	require.NoError(t, err)
	require.NoError(t, file.Close())

	again, err := Open(path)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, again.Close()) })
	require.NoError(t, again.add(Mail{MessageID: "four@x"}))
	mails := again.List("", 0)
	require.Len(t, mails, 3)
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, 3, strings.Count(string(text), "}\n"), "one line a mail")
	require.Equal(t, "four@x", mails[2].MessageID)
	newest := again.List("", 1)
	require.Equal(t, mails[2:], newest)
	about := again.List("two@x", 0)
	require.Equal(t, mails[1:2], about)
	again.Full.Store(true)
	require.Equal(t, errNoRoom, again.add(Mail{}))
}

// TestSink_AnswersNoDomain, whose name may point here by DNS rebinding: mails are private.
func TestSink_AnswersNoDomain(t *testing.T) {
	t.Parallel()
	sink, err := Open(filepath.Join(t.TempDir(), "mails"))
	require.NoError(t, err)
	mails, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	lists, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- sink.Serve(ctx, mails, lists) }()
	t.Cleanup(func() {
		stop()
		require.NoError(t, <-served)
		require.NoError(t, sink.Close())
	})
	for host, status := range map[string]int{"": http.StatusOK, "evil.example": http.StatusMisdirectedRequest} {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+lists.Addr().String()+"/v1/mails", nil)
		require.NoError(t, err)
		r.Host = host
		answer, err := http.DefaultClient.Do(r)
		require.NoError(t, err)
		require.NoError(t, answer.Body.Close())
		require.Equal(t, status, answer.StatusCode)
	}
}
