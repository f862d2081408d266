package authority_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/idempotency"
	"github.com/oncepay/oncepay/idempotency/authority"
	"github.com/oncepay/oncepay/idempotency/authority/arrival"
	"github.com/oncepay/oncepay/idempotency/memstore"
)

// replicas are two servers on one database that share no store of records.
type replicas struct {
	*testing.T
	ctx  context.Context
	pool *pgxpool.Pool
	urls [2]string
}

// serve starts them with one handler.
func serve(t *testing.T, handler func(*authority.Keys) http.HandlerFunc, opts ...authority.Option) *replicas {
	t.Helper()
	ctx, pool := open(t)
	require.NoError(t, authority.Migrate(ctx, pool))
	_, err := pool.Exec(ctx, "CREATE TABLE notes (text text NOT NULL UNIQUE)")
	require.NoError(t, err)
	r := &replicas{T: t, ctx: ctx, pool: pool}
	for i := range r.urls {
		once := idempotency.New(memstore.New(), idempotency.Always(idempotency.Policy{FailureMode: idempotency.FailOpen}), idempotency.WithSharedScope())
		next := handler(authority.New(pool, opts...))
		server := httptest.NewUnstartedServer(arrival.Note(netip.MustParsePrefix("127.0.0.0/8"))(once.Handler(next)))
		server.Config.ConnContext = arrival.WithConn
		server.Start()
		t.Cleanup(func() { server.Close(); once.Wait() })
		r.urls[i] = server.URL
	}
	return r
}

// makeNote is a handler of the README's length.
func makeNote(keys *authority.Keys) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		text, _ := io.ReadAll(r.Body)
		keys.Serve(w, r, "note", func(ctx context.Context, tx *authority.Tx) (authority.Outcome, error) {
			switch string(text) {
			case "refuse":
				return authority.RefusedForNow(authority.Answer{Status: 404, Body: []byte("refused")}), nil
			case "break":
				return authority.Outcome{}, errors.New("secret")
			case "forget":
				return authority.Outcome{}, nil
			}
			_, err := tx.Exec(ctx, "INSERT INTO notes VALUES ($1)", text)
			return authority.Done(authority.Answer{Status: 201, Body: text, Header: map[string]string{"Location": "/notes/1"}}), err
		})
	}
}

// post sends a request to a replica. headers are pairs.
func (r *replicas) post(replica int, key, body string, headers ...string) (status int, answer string, replayed bool) {
	r.Helper()
	q, err := http.NewRequestWithContext(r.ctx, http.MethodPost, r.urls[replica], strings.NewReader(body))
	require.NoError(r, err)
	if key != "" {
		q.Header.Set(idempotency.HeaderKey, key)
	}
	for i := 0; i < len(headers); i += 2 {
		q.Header.Set(headers[i], headers[i+1])
	}
	a, err := http.DefaultClient.Do(q)
	require.NoError(r, err)
	defer func() { _ = a.Body.Close() }()
	text, err := io.ReadAll(a.Body)
	require.NoError(r, err)
	if a.Header.Get("Content-Type") == "application/problem+json" {
		var problem struct{ Code string }
		require.NoError(r, json.Unmarshal(text, &problem))
		text = []byte(problem.Code)
	}
	return a.StatusCode, string(text), a.Header.Get(idempotency.HeaderReplay) == "true"
}

// expect sends a request and compares the answer.
func (r *replicas) expect(replica int, key, body string, status int, answer string, replayed bool, headers ...string) {
	r.Helper()
	gotStatus, got, gotReplay := r.post(replica, key, body, headers...)
	require.Equal(r, []any{status, answer, replayed}, []any{gotStatus, got, gotReplay})
}

func (r *replicas) notes() (n int) {
	r.Helper()
	require.NoError(r, r.pool.QueryRow(r.ctx, "SELECT count(*) FROM notes").Scan(&n))
	return n
}

// TestServe_AnswersARejectedRequest that another release executed: the store is another one, too.
func TestServe_AnswersARejectedRequest(t *testing.T) {
	t.Parallel()
	r := serve(t, makeNote)
	once := idempotency.New(memstore.New(), idempotency.Always(idempotency.Policy{FailureMode: idempotency.FailOpen}), idempotency.WithSharedScope())
	keys := authority.New(r.pool)
	stricter := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		once.Reject(w, q, func(w http.ResponseWriter, q *http.Request) {
			keys.Serve(w, q, "note", func(context.Context, *authority.Tx) (authority.Outcome, error) {
				return authority.RefusedForNow(authority.Answer{Status: 400, Body: []byte("rejected")}), nil
			})
		})
	}))
	t.Cleanup(func() { stricter.Close(); once.Wait() })
	r.expect(0, "k", "a", 201, "a", false)
	lenient := r.urls[1]
	r.urls[1] = stricter.URL
	r.expect(1, "k", "a", 201, "a", true)
	r.expect(1, "k", "b", 422, idempotency.CodeKeyReused, false)
	r.expect(1, "free", "b", 400, "rejected", false)
	r.urls[1] = lenient
	r.expect(1, "free", "b", 201, "b", false)
	require.Equal(t, 2, r.notes())
}

func TestServe_HasOneEffectAtAllReplicas(t *testing.T) {
	t.Parallel()
	r := serve(t, makeNote, authority.WithTombstones(90*24*time.Hour))
	r.expect(0, "k", "a", 201, "a", false)
	r.expect(1, "k", "a", 201, "a", true)
	r.expect(0, "k", "a", 201, "a", true) // by the store
	r.expect(0, "k", "b", 422, idempotency.CodeKeyReused, false)
	r.expect(1, "l", "b", 201, "b", false)
	r.expect(1, "", "c", 201, "c", false)
	require.Equal(t, 3, r.notes())
	_, err := r.pool.Exec(r.ctx, "UPDATE idempotency_keys SET expires_at = now() WHERE key = 'l'")
	require.NoError(t, err)
	r.expect(0, "l", "b", 409, authority.CodeKeyExpired, false)
}

func TestServe_KeepsNothingOfWhatIsNotDone(t *testing.T) {
	t.Parallel()
	r := serve(t, makeNote)
	r.expect(0, "k", "refuse", 404, "refused", false)
	r.expect(0, "k", "break", 500, authority.CodeInternal, false)
	r.expect(0, "k", "forget", 500, authority.CodeInternal, false)
	r.expect(0, "", "forget", 500, authority.CodeInternal, false)
	r.expect(0, "k", "a", 201, "a", false)
	r.expect(0, "l", "a", 500, authority.CodeInternal, false) // the note is there
	require.Equal(t, 1, r.notes())
}

func TestServe_StopsOlderCopies(t *testing.T) {
	t.Parallel()
	r := serve(t, makeNote)
	at := func(ago time.Duration) []string {
		return []string{arrival.Header, fmt.Sprintf("t=%.3f", float64(time.Now().Add(-ago).UnixMilli())/1000)}
	}
	r.expect(0, "k", "refuse", 404, "refused", false, at(time.Second)...)
	r.expect(1, "k", "a", 409, authority.CodeNewerRefused, false, at(time.Minute)...)
	r.expect(1, "k", "a", 503, authority.CodeTooOld, false, at(authority.MaxRequestAge+time.Minute)...)
	require.Zero(t, r.notes())
	r.expect(1, "k", "a", 201, "a", false)
}

func TestServe_DoesNotExecuteWhatItsClientHasLeft(t *testing.T) {
	t.Parallel()
	entered, goOn, ended := make(chan struct{}), make(chan struct{}), make(chan struct{})
	r := serve(t, func(keys *authority.Keys) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			entered <- struct{}{}
			<-goOn
			makeNote(keys)(w, r)
			ended <- struct{}{}
		}
	})
	conn, err := (&net.Dialer{}).DialContext(r.ctx, "tcp", strings.TrimPrefix(r.urls[0], "http://"))
	require.NoError(t, err)
	_, err = fmt.Fprint(conn, "POST / HTTP/1.1\r\nHost: shop\r\nContent-Length: 1\r\n\r\na")
	require.NoError(t, err)
	<-entered
	require.NoError(t, conn.Close())
	goOn <- struct{}{}
	<-ended
	require.Zero(t, r.notes())
}

// TestServeProvider_ChargesOnce has a provider that executes and does not answer at first.
func TestServeProvider_ChargesOnce(t *testing.T) {
	t.Parallel()
	charged, asked := map[string]int{}, 0
	provider := authority.Provider{Ask: func(_ context.Context, a authority.Attempt) (authority.Run, error) {
		charged[a.ID]++
		if asked++; asked == 1 {
			return nil, errors.New("no answer")
		}
		return func(context.Context, *authority.Tx) (authority.Outcome, error) {
			return authority.Done(authority.Answer{Status: 201, Body: []byte(a.ID)}), nil
		}, nil
	}}
	r := serve(t, pay(provider))
	r.expect(0, "k", "a", 503, authority.CodeUnknown, false)
	r.expect(1, "k", "b", 409, idempotency.CodeInProgress, false)
	r.expect(1, "k", "a", 201, "payment-1", false)
	r.expect(0, "k", "a", 201, "payment-1", true)
	require.Equal(t, map[string]int{"payment-1": 2}, charged)
}

// pay is a handler that begins payment-1 and asks the provider for it.
func pay(provider authority.Provider) func(*authority.Keys) http.HandlerFunc {
	return func(keys *authority.Keys) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			keys.ServeProvider(w, r, "pay", func(ctx context.Context, tx *authority.Tx) (authority.Outcome, error) {
				_, err := tx.Exec(ctx, "INSERT INTO notes VALUES ('payment-1')")
				return authority.Begun("payment-1"), err
			}, provider)
		}
	}
}

// TestServeProvider_HoldsWhatNobodyCanFindOut has a provider that never answers and remembers no
// key, until a person settles.
func TestServeProvider_HoldsWhatNobodyCanFindOut(t *testing.T) {
	t.Parallel()
	asked := 0
	r := serve(t, pay(authority.Provider{Ask: func(context.Context, authority.Attempt) (authority.Run, error) {
		asked++
		return nil, errors.New("no answer")
	}}))
	r.expect(0, "k", "a", 503, authority.CodeUnknown, false)
	keys := authority.New(r.pool)
	attempt, err := keys.Find(r.ctx, "payment-1")
	require.NoError(t, err)
	require.NoError(t, keys.Hold(r.ctx, attempt))
	r.expect(1, "k", "a", 409, authority.CodeHeld, false)
	require.Equal(t, 1, asked)
	_, err = keys.SettleAny(r.ctx, attempt, func(context.Context, *authority.Tx) (authority.Outcome, error) {
		return authority.Refused(authority.Answer{Status: 402, Body: []byte("declined")}), nil
	})
	require.NoError(t, err)
	r.expect(1, "k", "a", 402, "declined", true)
}

// TestServe_RefusesAKeyThatNoMiddlewareTook: the request would be executed as if it had none.
func TestServe_RefusesAKeyThatNoMiddlewareTook(t *testing.T) {
	t.Parallel()
	r := serve(t, makeNote)
	log := new(bytes.Buffer)
	handler := makeNote(authority.New(r.pool, authority.WithLogger(slog.New(slog.NewTextHandler(log, nil)))))
	request := httptest.NewRequestWithContext(r.ctx, http.MethodPost, "/", strings.NewReader("a"))
	request.Header.Set("Idempotency-Key", "k")
	w := httptest.NewRecorder()
	handler(w, request)
	require.Equal(t, 500, w.Code, w.Body)
	require.Zero(t, r.notes())
	require.Contains(t, log.String(), "came through no idempotency.Middleware")
	request.Header.Del("Idempotency-Key")
	w = httptest.NewRecorder()
	handler(w, request)
	require.Equal(t, 201, w.Code, w.Body)
}

func TestServeProvider_NeedsAKey(t *testing.T) {
	t.Parallel()
	r := serve(t, pay(authority.Provider{Ask: func(context.Context, authority.Attempt) (authority.Run, error) { return nil, nil }}))
	r.expect(0, "", "a", 400, idempotency.CodeKeyMissing, false)
	require.Zero(t, r.notes())
}

// TestResume_OutlivesABugOfItsUser: a panic in a worker would end the process, and then the next
// one.
func TestResume_OutlivesABugOfItsUser(t *testing.T) {
	t.Parallel()
	r := serve(t, pay(authority.Provider{Ask: func(context.Context, authority.Attempt) (authority.Run, error) { return nil, nil }}))
	r.expect(0, "k", "a", 503, authority.CodeUnknown, false)
	log := new(bytes.Buffer)
	keys := authority.New(r.pool, authority.WithLogger(slog.New(slog.NewTextHandler(log, nil))))
	due := func() {
		_, err := r.pool.Exec(r.ctx, "UPDATE idempotency_keys SET due_at = now()")
		require.NoError(t, err)
	}
	due()
	_, err := keys.Resume(r.ctx, authority.Provider{Ask: func(context.Context, authority.Attempt) (authority.Run, error) { panic("a bug") }}, 9)
	require.ErrorContains(t, err, "a bug")
	due()
	_, err = keys.Resume(r.ctx, authority.Provider{Ask: func(context.Context, authority.Attempt) (authority.Run, error) { return nil, nil }}, 9)
	require.NoError(t, err)
	require.Contains(t, log.String(), "outcome still unknown")
	require.Contains(t, log.String(), "id=payment-1")
	due()
	_, err = keys.Resume(r.ctx, authority.Provider{}, 9)
	require.ErrorContains(t, err, "Ask is nil")
	settled, err := keys.Resume(r.ctx, authority.Provider{Ask: func(context.Context, authority.Attempt) (authority.Run, error) {
		return func(context.Context, *authority.Tx) (authority.Outcome, error) {
			return authority.Done(authority.Answer{Status: 201, Body: []byte("paid")}), nil
		}, nil
	}}, 9)
	require.NoError(t, err)
	require.Equal(t, 1, settled)
	r.expect(1, "k", "a", 201, "paid", true)
}
