package pspsim

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/stretchr/testify/require"
)

// trouble asks for one, or tells what it met.
func (b *testBundle) trouble(method, body string) (status, met int) {
	b.t.Helper()
	request, err := http.NewRequestWithContext(b.t.Context(), method, b.url+"/v1/trouble", strings.NewReader(body))
	require.NoError(b.t, err)
	response, err := b.client.Do(request)
	require.NoError(b.t, err)
	defer response.Body.Close()
	var told struct {
		Met int `json:"met"`
	}
	require.NoError(b.t, json.UnmarshalRead(response.Body, &told))
	return response.StatusCode, told.Met
}

func (b *testBundle) isTroubled(by trouble) {
	b.t.Helper()
	body, err := json.Marshal(by)
	require.NoError(b.t, err)
	status, _ := b.trouble(http.MethodPut, string(body))
	require.Equal(b.t, http.StatusOK, status)
}

func (b *testBundle) isWellAgain(met int) {
	b.t.Helper()
	for _, want := range []int{met, 0} {
		_, is := b.trouble(http.MethodDelete, "")
		require.Equal(b.t, want, is)
	}
}

// met waits until the trouble of the moment has met that many answers and events.
func (b *testBundle) met(want int) {
	b.t.Helper()
	require.Eventually(b.t, func() bool {
		b.sim.troubles.mu.Lock()
		defer b.sim.troubles.mu.Unlock()
		return b.sim.troubles.met == want
	}, testTimeout, tick)
}

func TestTrouble_AnswersFailWithAndWithoutACharge(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.isTroubled(answersFail)
	status, _ := b.charge("k1", "tok_visa")
	require.Equal(t, http.StatusInternalServerError, status)
	require.Empty(t, b.list("/v1/charges"))

	b.isTroubled(answersFailLate)
	status, _ = b.charge("k1", "tok_visa")
	require.Equal(t, http.StatusInternalServerError, status)
	charged := b.list("/v1/charges")
	require.Len(t, charged, 1)

	b.isWellAgain(1)
	status, charge := b.charge("k1", "tok_visa")
	require.Equal(t, http.StatusCreated, status)
	require.Equal(t, charged[0].ID, charge.ID)
}

func TestTrouble_AnswersAreGarbage(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.isTroubled(answersGarbage)
	status, _, err := b.post(t.Context(), "/v1/charges", "k1", chargeOf("tok_visa"))
	require.Error(t, err, "not JSON")
	require.Equal(t, http.StatusOK, status)
	require.Len(t, b.list("/v1/charges"), 1)
	b.isWellAgain(1)
}

func TestTrouble_EventsAreRepeatedNewestFirst(t *testing.T) {
	t.Parallel()
	e := newEar(t, always(200))
	b := tellingTo(t, e)
	b.isTroubled(eventsRepeated)
	_, charge := b.charge("k1", "tok_visa")
	require.Equal(t, "evt_"+charge.ID, e.next().id, "at once")
	require.Equal(t, "evt_"+charge.ID, e.next().id, "and when it is due")
	_, refund := b.refund("k2", charge.ID, 100)
	for _, want := range []string{refund.ID, charge.ID, refund.ID} {
		require.Equal(t, "evt_"+want, e.next().id)
	}
	b.isWellAgain(2)
	_, other := b.charge("k3", "tok_visa")
	require.Equal(t, "evt_"+other.ID, e.next().id)
	require.NoError(t, b.sim.Close(), "which ends all deliveries")
	require.Empty(t, e.events)
}

func TestTrouble_EventsAreLost(t *testing.T) {
	t.Parallel()
	e := newEar(t, always(200))
	b := tellingTo(t, e)
	b.isTroubled(eventsLost)
	_, lost := b.charge("k1", "tok_visa")
	b.met(1)
	b.isWellAgain(1)
	_, heard := b.charge("k2", "tok_visa")
	require.Equal(t, "evt_"+heard.ID, e.next().id)
	require.NotEqual(t, lost.ID, heard.ID)
	require.True(t, b.delivered("k1"), "given up for good")
}

func TestTrouble_EventsAreDelayed(t *testing.T) {
	t.Parallel()
	e := newEar(t, always(200))
	b := tellingTo(t, e)
	b.isTroubled(eventsDelayed)
	_, charge := b.charge("k1", "tok_visa")
	b.met(1)
	require.Empty(t, e.events)
	b.isWellAgain(1)
	require.Equal(t, "evt_"+charge.ID, e.next().id)
}

func TestTrouble_DelayedEventsEndWithTheProvider(t *testing.T) {
	t.Parallel()
	b := tellingTo(t, newEar(t, always(200)))
	b.isTroubled(eventsDelayed)
	b.charge("k1", "tok_visa")
	b.met(1)
	require.NoError(t, b.sim.Close())
}

func TestTrouble_FirstAnswerAndEventAreHeld(t *testing.T) {
	t.Parallel()
	e := newEar(t, always(200))
	b := tellingTo(t, e)
	b.isTroubled(bothHeld)
	first := make(chan error, 1)
	go func() {
		_, _, err := b.post(t.Context(), "/v1/charges", "k1", chargeOf("tok_visa"))
		first <- err
	}()
	b.met(2)
	status, again := b.charge("k1", "tok_visa")
	require.Equal(t, http.StatusCreated, status)
	require.Empty(t, first)
	require.Empty(t, e.events)
	b.isWellAgain(2)
	require.NoError(t, <-first)
	require.Equal(t, "evt_"+again.ID, e.next().id)
}

func TestTrouble_UnknownIsRefused(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for _, body := range []string{`{"answers":"late"}`, `{"webhooks":"fail"}`, `{"clock":"wrong"}`, `{`} {
		status, _ := b.trouble(http.MethodPut, body)
		require.Equal(t, http.StatusBadRequest, status, body)
	}
}

const tick = time.Millisecond
