package postgres

import (
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/internal/checkout"
	"github.com/oncepay/oncepay/internal/outbox"
	"github.com/oncepay/oncepay/internal/purge"
)

// grants are what the default privileges of docs/operations.md#in-a-cluster lead to.
const grants = `
GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO service;
GRANT USAGE, SELECT, UPDATE ON ALL SEQUENCES IN SCHEMA public TO service;`

// TestRights_OfAServiceThatCannotChangeTheSchema: its user is not the one that migrates.
func TestRights_OfAServiceThatCannotChangeTheSchema(t *testing.T) {
	t.Parallel()
	b := setup(t)
	service := "service_" + strings.ReplaceAll(newID().String(), "-", "") // users belong to the whole server
	_, err := b.pool.Exec(b.ctx, "CREATE ROLE "+service+" LOGIN PASSWORD 'p';"+strings.ReplaceAll(grants, "service", service)+"DELETE FROM timelines")
	require.NoError(t, err)
	limited, err := url.Parse(b.pool.Config().ConnString())
	require.NoError(t, err)
	limited.User = url.UserPassword(service, "p")

	b.Store = NewStore(open(t, limited.String()), Options{UnpaidFor: time.Minute}) // it begins a timeline, and moves the positions
	customer := b.customer().ID
	b.topUp(customer, 10_000)
	b.pay(b.order(customer, 1), checkout.MethodWallet)
	paid := b.pay(b.order(customer, 1), checkout.MethodCard)
	wanted := checkout.NewRefund{PaymentID: paid.ID}
	_, err = b.CardRefunds().Begin(b.ctx, b.call("refund", wanted), wanted)
	require.NoError(t, err)
	unpaid := b.order(customer, 1)
	b.timeUp(unpaid)
	b.expire(10, 1)
	b.keepUntil("pay-"+paid.OrderID.String(), -time.Hour)
	n, err := purge.New(b.Store, purge.Options{}).RunOnce(b.ctx)
	require.NoError(t, err)
	require.Positive(t, n)
	require.Equal(t, 1, b.count("timelines"))

	events, relay := NewOutbox(b.pool), newID()
	from, err := events.Lease(b.ctx, relay, time.Minute)
	require.NoError(t, err)
	waiting, last, err := events.Read(b.ctx, from, 100)
	require.NoError(t, err)
	require.NotEmpty(t, waiting)
	require.NoError(t, events.Advance(b.ctx, relay, from, last, time.Minute))
	for _, group := range NewInbox(b.pool).Subscriptions() {
		of := slices.DeleteFunc(slices.Clone(waiting), func(e outbox.Event) bool { return !slices.Contains(group.Types, e.Type) })
		_, err := group.Handle(b.ctx, of)
		require.NoError(t, err)
		_, err = events.AdvanceGroup(b.ctx, group.Group, 100)
		require.NoError(t, err)
	}

	_, err = b.pool.Exec(b.ctx, "ALTER TABLE orders ADD COLUMN more text")
	require.ErrorContains(t, err, "must be owner")
	_, err = b.pool.Exec(b.ctx, "CREATE TABLE more ()")
	require.ErrorContains(t, err, "permission denied")
}
