package tiers

import (
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/internal/testenv"
)

// onePayment is a key that has led to a payment, and two events, of which one is published.
const onePayment = `INSERT INTO accounts (id, name) VALUES ('00000000-0000-7000-8000-000000000001', 'one');
INSERT INTO customers (id, account_id, name, email, created_at, updated_at) SELECT id, id, 'Ada', 'ada@example.com', now(), now() FROM accounts;
INSERT INTO orders (id, account_id, customer_id, status, total_amount, total_currency, created_at, updated_at, expires_at)
SELECT id, id, id, 'paid', 100, 'USD', now(), now(), now() FROM accounts;
INSERT INTO payments (id, account_id, order_id, customer_id, method, token, amount, currency, refunded, status, decline_code, provider_id,
	created_at, updated_at) SELECT '00000000-0000-7000-8000-000000000002', id, id, id, 'card', 'tok', 100, 'USD', 0, 'succeeded', '', 'ch_1', now(), now() FROM orders;
INSERT INTO idempotency_keys (account_id, key, fingerprint, operation, status, resource_id, response_status, response_headers, response_body,
	completed_at, expires_at)
SELECT account_id, 'pay', sha256('body'), 'pay', 'completed', id, 201, '{}', 'body', now(), now() FROM payments;
INSERT INTO outbox (event_id, account_id, type, aggregate, subject, data)
SELECT gen_random_uuid(), id, type, 'order', id, '{}' FROM orders, unnest(ARRAY['order.placed', 'payment.succeeded']) type;
UPDATE outbox_cursor SET position = (SELECT min(id) FROM outbox);
UPDATE consumer_cursors SET position = CASE consumer WHEN 'warehouse-notices' THEN (SELECT min(id) FROM outbox) ELSE 0 END`

func TestReadPostgres_HasAllOfAPayment(t *testing.T) {
	t.Parallel()
	url := testenv.Postgres(t)
	db, err := pgx.Connect(t.Context(), url)
	require.NoError(t, err)
	_, err = db.Exec(t.Context(), onePayment)
	require.NoError(t, err)
	require.NoError(t, db.Close(t.Context()))

	view := View{Key: "pay"}
	require.NoError(t, readPostgres(t.Context(), url, &view))
	const account = "00000000-0000-7000-8000-000000000001"
	require.Equal(t, &Payment{ID: "00000000-0000-7000-8000-000000000002", Order: account, OrderStatus: "paid", Status: "succeeded", Attempt: 1,
		Amount: 100, Currency: "USD", Charge: "ch_1"}, view.Payment)
	require.Equal(t, "/v1/payments/"+view.Payment.ID, view.Authority.Resource)
	require.Equal(t, []any{account, "completed", view.Authority.BodyHash, 201}, []any{view.Authority.Account, view.Authority.Status, view.Authority.Fingerprint, view.Authority.ResponseStatus})
	require.Len(t, view.Authority.BodyHash, 64)
	require.False(t, view.Authority.CreatedAt.IsZero())
	require.Len(t, view.Events, 2)
	require.Equal(t, Event{view.Events[0].Position, "order.placed", true, []string{"warehouse-notices"}}, view.Events[0])
	require.Equal(t, Event{view.Events[1].Position, "payment.succeeded", false, []string{}}, view.Events[1])
	require.Equal(t, &Stream{Last: view.Events[1].Position, Published: view.Events[0].Position}, view.Stream)

	none := View{Key: "none"}
	require.NoError(t, readPostgres(t.Context(), url, &none))
	require.Equal(t, View{Key: "none", Events: []Event{}, Stream: view.Stream}, none)
}
