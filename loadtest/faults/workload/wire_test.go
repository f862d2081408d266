package workload

import (
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/loadtest/faults/journal"
)

var payment = Request{Path: "/orders/o/payments", Body: []byte(`{"method":{}}`), Prefer: "wait=2", Attempt: journal.Attempt{
	Account: "sk_test_demo", Key: "k", Operation: "payment", Client: 7, Via: api2, Purpose: journal.Burst}}

// script has each attempt of a key meet the next trouble, and the ones after them none.
func script(troubles ...func(http.ResponseWriter)) func(int, http.ResponseWriter) bool {
	return func(attempt int, w http.ResponseWriter) bool {
		if attempt <= len(troubles) {
			troubles[attempt-1](w)
		}
		return attempt <= len(troubles)
	}
}

func reset(http.ResponseWriter) { panic(http.ErrAbortHandler) }

func unavailable(w http.ResponseWriter) {
	problem(w, http.StatusServiceUnavailable, "service_unavailable")
}

func inProgress(w http.ResponseWriter) {
	w.Header().Set("Retry-After", "0")
	problem(w, http.StatusConflict, "idempotency_in_progress")
}

func beingPaid(w http.ResponseWriter) {
	w.Header().Set("Retry-After", "0")
	problem(w, http.StatusConflict, "order_being_paid")
}

func cutInHalf(w http.ResponseWriter) {
	w.Header().Set("Content-Length", "100")
	w.WriteHeader(http.StatusCreated)
	_, _ = w.Write([]byte(`{"id":"o`))
}

func TestCall_KeepsTheKeyAndJournalsEveryAttempt(t *testing.T) {
	t.Parallel()
	f, wire := newFakeShop(t)
	f.trouble = script(reset, unavailable, inProgress, beingPaid, cutInHalf)
	last := wire.Call(t.Context(), payment)

	all, wired := wire.Journal.Attempts(), f.requests()
	require.Len(t, all, 6)
	require.Len(t, wired, 6, "one attempt is one request")
	outcomes := []journal.Outcome{journal.Unknown, journal.Unknown, journal.InProgress, journal.Rejected, journal.Unknown, journal.Succeeded}
	statuses := []int{0, 503, 409, 409, 201, 201}
	for i, a := range all {
		require.Equal(t, seen{a.Via, "POST", "/v1/orders/o/payments", "sk_test_demo", "k", "wait=2", `{"method":{}}`, ""}, wired[i])
		require.Equal(t, outcomes[i], a.Outcome(), i)
		require.Equal(t, statuses[i], a.Status, i)
		require.Equal(t, i+1, a.Number)
		require.Equal(t, payment.fingerprint(), a.Fingerprint)
		require.Equal(t, journal.Attempt{Client: 7, Account: "sk_test_demo", Key: "k", Operation: "payment", Purpose: journal.Burst},
			journal.Attempt{Client: a.Client, Account: a.Account, Key: a.Key, Operation: a.Operation, Purpose: a.Purpose})
		require.Greater(t, a.Return, a.Invoke)
		if a.Status != 0 {
			require.Equal(t, a.Via, a.Replica)
		}
	}
	require.Equal(t, api2, all[0].Via, "the first goes where it was told to")
	require.Contains(t, all[4].Error, "the answer broke off")
	require.Empty(t, all[4].Body)
	require.Equal(t, all[5], last)
	require.NotEmpty(t, last.Resource)
	require.Equal(t, digest(`{"id":"`+last.Resource+`"}`), last.Body)
}

func TestCall_StopsAtAFinalAnswer(t *testing.T) {
	t.Parallel()
	for status, code := range map[int]string{402: "payment_declined", 409: "out_of_stock", 422: "idempotency_key_reused", 404: "order_not_found", 400: "x"} {
		f, wire := newFakeShop(t)
		f.trouble = script(func(w http.ResponseWriter) { problem(w, status, code) })
		last := wire.Call(t.Context(), payment)
		require.Equal(t, code, last.Code)
		require.Len(t, f.requests(), 1, code)
	}
}

func TestCall_RetriesAtOtherEndpoints(t *testing.T) {
	t.Parallel()
	f, wire := newFakeShop(t)
	times := map[string]int{}
	f.trouble = func(attempt int, w http.ResponseWriter) bool {
		times[f.seen[len(f.seen)-1].door]++
		// One attempt in ten goes to each replica: 40 attempts miss one in three of 100 calls.
		if attempt >= 40 && len(times) == len(endpoints) || attempt == 1000 {
			return false
		}
		w.Header().Set("Retry-After", "0")
		w.WriteHeader(http.StatusConflict) // after which pauses do not grow
		return true
	}
	wire.Call(t.Context(), payment)
	attempts := len(f.requests())
	require.Len(t, times, len(endpoints), "%v", times)
	require.Greater(t, times[nginx], attempts/2)
}

func TestOnce_IsOneAttempt(t *testing.T) {
	t.Parallel()
	f, wire := newFakeShop(t)
	f.trouble = script(unavailable)
	last := wire.Once(t.Context(), payment, 3)
	require.Equal(t, journal.Unknown, last.Outcome())
	require.Equal(t, 3, last.Number)
	require.Len(t, f.requests(), 1)
}

func TestCall_SendsAChangeWithoutAKeyOnce(t *testing.T) {
	t.Parallel()
	f, wire := newFakeShop(t)
	f.trouble = script(unavailable)
	a := clientsOf(t, wire, 1).action(3, 4)
	is := a.call(t.Context(), a.put("sk_test_demo", a.shelf(), 5).keyless())
	require.Equal(t, journal.Unknown, is.Outcome())
	all := f.requests()
	require.Len(t, all, 1, "it may have acted")
	require.Empty(t, all[0].key)
	require.Empty(t, is.Key)
	require.Empty(t, a.open.list(true), "nobody sends it again")
}

func TestRecorder_EntersAChangeAndItsAnswer(t *testing.T) {
	t.Parallel()
	f, wire := newFakeShop(t)
	condition := ""
	f.trouble = func(_ int, w http.ResponseWriter) bool {
		condition = f.ifMatch
		w.Header().Set("ETag", `"7"`)
		_, _ = io.WriteString(w, `{"stock":4}`)
		return true
	}
	a := clientsOf(t, wire, 1).action(3, 4)
	r := a.put("sk_test_demo", a.shelf(), 5)
	r.Change.IfMatch = 6
	is := a.call(t.Context(), r)
	stock := int64(4)
	require.Equal(t, &journal.Change{Of: "faults-shelf-3-4", Kind: journal.Set, Amount: 5, IfMatch: 6, Stock: &stock, Version: 7}, is.Change)
	require.Equal(t, `"6"`, condition)
	require.Nil(t, r.Change.Stock, "the request is as it was")
	other := r
	other.Change = &journal.Change{IfMatch: 5}
	require.NotEqual(t, r.fingerprint(), other.fingerprint(), "another condition is another request")
}

// wireTo is a wire in the bubble of a synctest, whose connections are what dial returns.
func wireTo(dial func() (net.Conn, error)) *Wire {
	wire := NewWire(map[string]string{api1: "http://a", api2: "http://b", nginx: "http://n"}, journal.NewWriter(io.Discard))
	wire.pool.DialContext = func(context.Context, string, string) (net.Conn, error) { return dial() }
	return wire
}

func refuse() (net.Conn, error) { return nil, syscall.ECONNREFUSED }

// neverAnswer accepts a connection and reads from it, until the client closes it.
func neverAnswer() (net.Conn, error) {
	client, server := net.Pipe()
	go func() { _, _ = io.Copy(io.Discard, server) }()
	return client, nil
}

func TestWire_NotesARefusedConnectionAsUnknown(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		wire := wireTo(refuse)
		last := wire.Once(t.Context(), payment, 1)
		require.Equal(t, journal.Unknown, last.Outcome())
		require.Contains(t, last.Error, "refused")
		require.Equal(t, []journal.Attempt{last}, wire.Journal.Attempts())
		require.Zero(t, last.Return, "it is noted at once")
		require.Zero(t, time.Since(wire.Began), "one attempt has no pause after it")
	})
}

func TestCall_EndsWithItsContext(t *testing.T) {
	t.Parallel()
	for name, dial := range map[string]func() (net.Conn, error){"in a pause": refuse, "in an attempt": neverAnswer} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				time.AfterFunc(10*time.Second, cancel) // no deadline: a Transport begins no pause that reaches one
				wire := wireTo(dial)
				last := wire.Call(ctx, payment)
				require.Equal(t, 10*time.Second, time.Since(wire.Began))
				require.Equal(t, journal.Unknown, last.Outcome())
				require.Greater(t, last.Number, 1, "until then it is sent again")
			})
		})
	}
}

func TestWire_PipelinesMoreThanIsReadAhead(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { _ = l.Close() }()
	wire := NewWire(map[string]string{api1: "http://" + l.Addr().String()}, journal.NewWriter(io.Discard))
	t.Cleanup(wire.Close)
	var group sync.WaitGroup
	defer group.Wait()
	group.Go(func() {
		wire.Once(t.Context(), Request{Attempt: journal.Attempt{Key: "k", Via: api1}, Path: "/orders", Body: []byte("{}"), Pipelined: true, Patience: hurried}, 1)
	})
	conn, err := l.Accept()
	require.NoError(t, err)
	defer func() { _ = conn.Close() }()
	sent, err := io.ReadAll(conn) // until the client breaks the connection
	require.NoError(t, err)
	_, after, _ := strings.Cut(string(sent), "{}")
	require.Equal(t, next, after)
	require.Greater(t, len(after), 4<<10)
}
