package pspsim

import (
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
	"github.com/stretchr/testify/require"
)

const (
	testSecret  = "whsec_dGhpcnR5LXR3byBieXRlcyBvZiB0aGUgdGVzdHM="
	testTimeout = 20 * time.Second
)

// received is an event as it arrived.
type received struct {
	event
	id string
}

// ear is an endpoint that events are sent to. It checks their signatures.
type ear struct {
	t      *testing.T
	url    string
	events chan received
	status func(n int) int // of the n-th answer, counted from 1
}

func newEar(t *testing.T, status func(n int) int) *ear {
	t.Helper()
	e := &ear{t: t, events: make(chan received, 100), status: status}
	verifier, err := standardwebhooks.NewWebhook(testSecret)
	require.NoError(t, err)
	heard := 0
	one := make(chan struct{}, 1) // at a time
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		one <- struct{}{}
		defer func() { <-one }()
		heard++
		body, err := io.ReadAll(r.Body)
		require.NoError(t, err)
		require.NoError(t, verifier.Verify(body, r.Header))
		require.Equal(t, "application/json", r.Header.Get("Content-Type"))
		got := received{id: r.Header.Get("webhook-id")}
		require.NoError(t, json.Unmarshal(body, &got.event))
		w.WriteHeader(status(heard))
		e.events <- got
	}))
	t.Cleanup(server.Close)
	e.url = server.URL
	return e
}

func always(status int) func(int) int { return func(int) int { return status } }

func (e *ear) next() received {
	e.t.Helper()
	select {
	case got := <-e.events:
		return got
	case <-time.After(testTimeout):
		e.t.Fatal("no event")
		return received{}
	}
}

// telling is a provider whose events go to the ear, quickly.
func (b *testBundle) telling(journal string, e *ear) *testBundle {
	b.t.Helper()
	sim, err := New(journal, slog.New(slog.DiscardHandler))
	require.NoError(b.t, err)
	sim.eventDelay, sim.firstPause = 0, time.Millisecond
	require.NoError(b.t, sim.SendEvents(e.url, testSecret))
	server := httptest.NewUnstartedServer(sim)
	server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelInfo)
	server.Start()
	b.t.Cleanup(func() { server.Close(); _ = sim.Close() })
	return &testBundle{t: b.t, sim: sim, url: server.URL, journal: journal, client: b.client}
}

func tellingTo(t *testing.T, e *ear) *testBundle {
	t.Helper()
	b := &testBundle{t: t, client: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}}
	return b.telling(filepath.Join(t.TempDir(), "journal"), e)
}

func TestWebhook_IsSentOnceForEachOutcome(t *testing.T) {
	t.Parallel()
	e := newEar(t, always(200))
	b := tellingTo(t, e)
	_, charge := b.charge("k1", "tok_visa")
	got := e.next()
	require.Equal(t, "charge.succeeded", got.Type)
	require.Equal(t, "evt_"+charge.ID, got.id)
	require.Equal(t, charge.entry, got.Data)
	_, _ = b.charge("k1", "tok_visa")

	_, declined := b.charge("k2", "tok_declined")
	got = e.next()
	require.Equal(t, "charge.declined", got.Type)
	require.Equal(t, declined.entry, got.Data)

	_, refund := b.refund("k3", charge.ID, 100)
	got = e.next()
	require.Equal(t, "refund.succeeded", got.Type)
	require.Equal(t, "evt_"+refund.ID, got.id)

	// Not before there is an outcome, and with the answer unsaid.
	status, _ := b.charge("k4", "tok_error_first")
	require.Equal(t, http.StatusInternalServerError, status)
	_, _, err := b.post(t.Context(), "/v1/charges", "k5", chargeOf("tok_charged_silent"))
	require.Error(t, err)
	_, _, err = b.post(t.Context(), "/v1/charges", "k6", chargeOf("tok_charged_no_answer"))
	require.Error(t, err)
	require.Equal(t, "k6", e.next().Data.IdempotencyKey)
	require.NoError(t, b.sim.Close(), "which ends all deliveries")
	require.Empty(t, e.events)
}

func TestWebhook_IsSentUntilItIsAnswered(t *testing.T) {
	t.Parallel()
	e := newEar(t, func(n int) int { return []int{503, 500, 404, 401, 200}[n-1] })
	b := tellingTo(t, e)
	_, charge := b.charge("k", "tok_visa")
	for range 5 {
		require.Equal(t, "evt_"+charge.ID, e.next().id)
	}
}

// TestWebhook_IsSentAfterARestart kills the provider's deliveries, and starts another one on its
// books.
func TestWebhook_IsSentAfterARestart(t *testing.T) {
	t.Parallel()
	deaf := newEar(t, always(503))
	b := tellingTo(t, deaf)
	_, charge := b.charge("k", "tok_visa")
	deaf.next()
	require.NoError(t, b.sim.Close())

	e := newEar(t, always(200))
	next := b.telling(b.journal, e)
	require.Equal(t, "evt_"+charge.ID, e.next().id)
	require.Eventually(t, func() bool { return next.delivered("k") }, testTimeout, time.Millisecond) // noted a moment after it was answered
	require.NoError(t, next.sim.Close())

	last := b.telling(b.journal, e)
	_, charge = last.charge("k2", "tok_visa")
	require.Equal(t, "evt_"+charge.ID, e.next().id, "and not the delivered one")
}

// delivered reports whether the event of a key's entry needs no more deliveries.
func (b *testBundle) delivered(key string) bool {
	b.t.Helper()
	found := b.sim.ledger.list(func(e *entry) bool { return e.IdempotencyKey == key })
	require.Len(b.t, found, 1)
	return found[0].Delivered
}

func TestWebhook_ReplayIsInReverse(t *testing.T) {
	t.Parallel()
	e := newEar(t, always(200))
	b := tellingTo(t, e)
	_, charge := b.charge("k1", "tok_visa")
	_, refund := b.refund("k2", charge.ID, 100)
	e.next()
	e.next()
	status, _ := b.mustPost("/v1/charges", "k3", `{"amount":1,"currency":"USD","reference":"another","source":"tok_visa"}`)
	require.Equal(t, http.StatusCreated, status)
	e.next()
	response, err := b.client.Post(b.url+"/v1/webhooks/replay?reference=order-1", "", nil)
	require.NoError(t, err)
	defer response.Body.Close()
	raw, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	require.JSONEq(t, fmt.Sprintf(`{"data":[{"id":"evt_%s","status":200},{"id":"evt_%s","status":200}]}`, refund.ID, charge.ID), string(raw))
	require.Equal(t, "evt_"+refund.ID, e.next().id)
	require.Equal(t, "evt_"+charge.ID, e.next().id)
	require.Empty(t, e.events)
}

func TestWebhook_NeedsASecret(t *testing.T) {
	t.Parallel()
	for _, secret := range []string{"", "whsec_", "whsec_!"} {
		require.ErrorContains(t, setup(t).sim.SendEvents("http://localhost", secret), "secret", secret)
	}
	b := setup(t)
	status, _ := b.mustPost("/v1/webhooks/replay", "", "")
	require.Equal(t, http.StatusNotFound, status)
}
