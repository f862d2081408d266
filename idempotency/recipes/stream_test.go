package recipes_test

import (
	"context"
	"errors"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/idempotency"
	"github.com/oncepay/oncepay/idempotency/memstore"
	"github.com/oncepay/oncepay/idempotency/recipes"
)

// startRedis needs the program redis-server.
func startRedis(t *testing.T) *redis.Client {
	t.Helper()
	socket := filepath.Join(t.TempDir(), "redis.sock")
	server := exec.Command("redis-server", "--port", "0", "--unixsocket", socket, "--save", "", "--dir", t.TempDir())
	require.NoError(t, server.Start())
	client := redis.NewClient(&redis.Options{Network: "unix", Addr: socket})
	t.Cleanup(func() {
		_ = client.Close()
		_ = server.Process.Kill()
		_ = server.Wait()
	})
	require.Eventually(t, func() bool { return client.Ping(t.Context()).Err() == nil }, 20*time.Second, 10*time.Millisecond)
	return client
}

// mailer counts the mails of each event.
type mailer struct {
	sent map[string]int
	fail error
}

func (m *mailer) work(_ context.Context, message redis.XMessage) error {
	if m.fail != nil {
		return m.fail
	}
	m.sent[message.Values["event"].(string)]++
	return nil
}

// setupStream returns a maker of consumers of one group, and a function that adds an event.
func setupStream(t *testing.T, m *mailer) (consumer func(name string) *recipes.Consumer, add func(event string)) {
	t.Helper()
	client := startRedis(t)
	require.NoError(t, client.XGroupCreateMkStream(t.Context(), "events", "mails", "0").Err())
	keys := &idempotency.Keys{Store: memstore.New(), Scope: "mails"}
	t.Cleanup(keys.Wait)
	return func(name string) *recipes.Consumer {
			return &recipes.Consumer{Client: client, Stream: "events", Group: "mails", Name: name, Keys: keys, Work: m.work}
		}, func(event string) {
			values := map[string]any{"event": event, "to": "ada"}
			require.NoError(t, client.XAdd(t.Context(), &redis.XAddArgs{Stream: "events", Values: values}).Err())
		}
}

func runOnce(t *testing.T, c *recipes.Consumer, want int) {
	t.Helper()
	done, err := c.RunOnce(t.Context())
	require.NoError(t, err)
	require.Equal(t, want, done)
}

func TestConsumer_DoesTheWorkOfAnEventOnce(t *testing.T) {
	t.Parallel()
	m := &mailer{sent: map[string]int{}}
	consumer, add := setupStream(t, m)
	add("order-1")
	add("order-2")
	add("order-1") // by a producer that had no answer
	runOnce(t, consumer("a"), 3)
	require.Equal(t, map[string]int{"order-1": 1, "order-2": 1}, m.sent)
	runOnce(t, consumer("a"), 0)
}

func TestConsumer_RepeatsWorkThatFailed(t *testing.T) {
	t.Parallel()
	m := &mailer{sent: map[string]int{}, fail: errors.New("no route to host")}
	consumer, add := setupStream(t, m)
	add("order-1")
	done, err := consumer("a").RunOnce(t.Context())
	require.ErrorIs(t, err, m.fail)
	require.Zero(t, done)
	m.fail = nil
	runOnce(t, consumer("b"), 1)
	require.Equal(t, map[string]int{"order-1": 1}, m.sent)
}

func TestConsumer_AcknowledgesWhatIsRefusedForGood(t *testing.T) {
	t.Parallel()
	m := &mailer{sent: map[string]int{}, fail: idempotency.Final(errors.New("no such address"))}
	consumer, add := setupStream(t, m)
	add("order-1")
	runOnce(t, consumer("a"), 1)
	runOnce(t, consumer("b"), 0)
	require.Empty(t, m.sent)
}

// TestConsumer_AcknowledgesANameThatWasUsedBefore: no delivery could ever do its work.
func TestConsumer_AcknowledgesANameThatWasUsedBefore(t *testing.T) {
	t.Parallel()
	m := &mailer{sent: map[string]int{}}
	consumer, add := setupStream(t, m)
	add("order-1")
	runOnce(t, consumer("a"), 1)
	values := map[string]any{"event": "order-1", "to": "bob"}
	require.NoError(t, consumer("a").Client.XAdd(t.Context(), &redis.XAddArgs{Stream: "events", Values: values}).Err())
	_, err := consumer("a").RunOnce(t.Context())
	require.ErrorContains(t, err, idempotency.CodeKeyReused)
	runOnce(t, consumer("b"), 0)
	require.Equal(t, map[string]int{"order-1": 1}, m.sent)
}

// TestConsumer_SurvivesAnEndBeforeTheAcknowledgement: the mail is sent, and the consumer ends.
func TestConsumer_SurvivesAnEndBeforeTheAcknowledgement(t *testing.T) {
	t.Parallel()
	m := &mailer{sent: map[string]int{}}
	consumer, add := setupStream(t, m)
	add("order-1")
	ctx, end := context.WithCancel(t.Context())
	dying := consumer("a")
	dying.Work = func(ctx context.Context, message redis.XMessage) error {
		defer end()
		return m.work(ctx, message)
	}
	_, err := dying.RunOnce(ctx)
	require.ErrorIs(t, err, context.Canceled)
	runOnce(t, consumer("b"), 1)
	require.Equal(t, map[string]int{"order-1": 1}, m.sent)
}
