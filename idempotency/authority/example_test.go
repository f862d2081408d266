package authority_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/oncepay/oncepay/idempotency"
	"github.com/oncepay/oncepay/idempotency/authority"
	"github.com/oncepay/oncepay/idempotency/authority/arrival"
	"github.com/oncepay/oncepay/idempotency/memstore"
)

// A handler around one INSERT. PostgreSQL alone decides, so the records may be in the memory of
// each process.
func ExampleKeys_Serve() {
	pool, err := pgxpool.New(context.Background(), "postgres://localhost/shop")
	if err != nil {
		panic(err)
	}
	keys := authority.New(pool)
	mux := http.NewServeMux()
	mux.HandleFunc("POST /orders", func(w http.ResponseWriter, r *http.Request) {
		item, _ := io.ReadAll(r.Body) // the middleware has read it
		keys.Serve(w, r, "place_order", func(ctx context.Context, tx *authority.Tx) (authority.Outcome, error) {
			if len(item) == 0 {
				return authority.RefusedForNow(authority.Answer{Status: http.StatusUnprocessableEntity}), nil
			}
			var id int64
			err := tx.QueryRow(ctx, "INSERT INTO orders (item) VALUES ($1) RETURNING id", item).Scan(&id)
			return authority.Done(authority.Answer{Status: http.StatusCreated, Body: fmt.Appendf(nil, `{"order":%d}`, id)}), err
		})
	})
	once := idempotency.New(memstore.New(), idempotency.Always(idempotency.Policy{Required: true, FailureMode: idempotency.FailOpen}),
		idempotency.WithScope(func(r *http.Request) string { return r.Header.Get("X-Account") }))
	server := http.Server{Addr: ":8080", Handler: arrival.Note()(once.Handler(mux)), ConnContext: arrival.WithConn, ReadHeaderTimeout: time.Minute}
	fmt.Println(server.ListenAndServe())
}

// charge is what a provider's client offers.
type charge struct{ ID, Status string }

func chargeCard(ctx context.Context, idempotencyKey string, cents int64) (charge, error) {
	return charge{Status: fmt.Sprintf("succeeded: %d cents for %s", cents, idempotencyKey)}, ctx.Err()
}

// A payment at a provider, with a table of its own: payments (id, cents, status).
func ExampleKeys_ServeProvider() {
	var pool *pgxpool.Pool
	keys := authority.New(pool, authority.WithTombstones(90*24*time.Hour))
	provider := authority.Provider{Ask: func(ctx context.Context, a authority.Attempt) (authority.Run, error) {
		var cents int64
		if err := pool.QueryRow(ctx, "SELECT cents FROM payments WHERE id = $1", a.ID).Scan(&cents); err != nil {
			return nil, err
		}
		done, err := chargeCard(ctx, "payment-"+a.ID, cents)
		if err != nil || done.Status != "succeeded" && done.Status != "declined" {
			return nil, fmt.Errorf("charge %q: %w", done.Status, err) // unknown
		}
		return func(ctx context.Context, tx *authority.Tx) (authority.Outcome, error) {
			_, err := tx.Exec(ctx, "UPDATE payments SET status = $2 WHERE id = $1", a.ID, done.Status)
			body, _ := json.Marshal(done)
			if done.Status == "declined" {
				return authority.Refused(authority.Answer{Status: http.StatusPaymentRequired, Body: body}), err
			}
			return authority.Done(authority.Answer{Status: http.StatusCreated, Body: body}), err
		}, nil
	}}
	http.HandleFunc("POST /payments", func(w http.ResponseWriter, r *http.Request) {
		keys.ServeProvider(w, r, "pay", func(ctx context.Context, tx *authority.Tx) (authority.Outcome, error) {
			var id string
			err := tx.QueryRow(ctx, "INSERT INTO payments (cents, status) VALUES (500, 'processing') RETURNING id::text").Scan(&id)
			return authority.Begun(id), err
		}, provider)
	})
	go func() { // in each process: for clients that do not come back
		for range time.Tick(5 * time.Second) {
			if _, err := keys.Resume(context.Background(), provider, 5); err != nil {
				slog.Error("resume payments", "error", err)
			}
		}
	}()
}

// The work of a job or a message, with its key in the same transaction: a process that dies at any
// moment leaves no work that another one repeats.
func ExampleKeys_Once() {
	var pool *pgxpool.Pool
	var store idempotency.Store
	keys := authority.New(pool)
	jobs := &idempotency.Keys{Store: store, Scope: "bookings", Policy: idempotency.Policy{TTL: 48 * time.Hour}}
	book := func(ctx context.Context, event string, cents int64) error {
		_, err := idempotency.Do(ctx, jobs, event, cents, func(ctx context.Context) (struct{}, error) {
			held := idempotency.ClaimFrom(ctx)
			claim := authority.Claim{Scope: held.Scope, Key: held.Key, Fingerprint: held.Fingerprint, Operation: "book", TTL: held.TTL, ArrivedAt: time.Now()}
			result, err := keys.Once(ctx, claim, func(ctx context.Context, tx *authority.Tx) (authority.Outcome, error) {
				_, err := tx.Exec(ctx, "INSERT INTO ledger (event, cents) VALUES ($1, $2)", event, cents)
				return authority.Done(authority.Answer{Status: http.StatusOK}), err
			})
			if err == nil && result.Replayed {
				held.Replayed()
				held.KeepFor(result.KeptFor)
			}
			return struct{}{}, err
		})
		return err
	}
	fmt.Println(book(context.Background(), "order-1", 500))
}

// What else to run in the background, in each process.
func ExampleKeys_Purge() {
	var keys *authority.Keys
	for range time.Tick(time.Minute) {
		for {
			purged, err := keys.Purge(context.Background(), 500)
			if err != nil || purged < 500 {
				break
			}
		}
		unsettled, err := keys.Unsettled(context.Background(), 5*time.Minute)
		if err == nil && (unsettled.Overdue > 0 || unsettled.Held > 0) {
			slog.Warn("operations wait", "overdue", unsettled.Overdue, "held", unsettled.Held)
		}
	}
}
