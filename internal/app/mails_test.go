package app

import (
	"context"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/internal/stack/mailsink"
)

// TestMails_ConfirmAnOrderAndItsPayment, as soon as there is a mail server: it is away at first.
func TestMails_ConfirmAnOrderAndItsPayment(t *testing.T) {
	t.Parallel()
	mails, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	cfg := testConfig(t)
	cfg.MailURL, cfg.MailFrom = "smtp://"+mails.Addr().String(), "shop@example.com"
	require.NoError(t, mails.Close())
	r := serveSeeded(t, cfg)
	order := r.placeOrder()
	require.Equal(t, http.StatusCreated, r.call(http.MethodPost, "/v1/orders/"+order+"/payments", "pay", cardPayment("tok_visa")).status)
	require.Eventually(t, func() bool { return count(t, r.servers.pool, "order_confirmations WHERE due_at IS NOT NULL") == 2 }, patience, pause)
	require.Eventually(t, func() bool { return r.workers.mailer.Overdue() > 0 }, patience, pause, "a server that is away is seen")

	sink, err := mailsink.Open(filepath.Join(t.TempDir(), "mails"))
	require.NoError(t, err)
	mails, err = net.Listen("tcp", mails.Addr().String())
	require.NoError(t, err)
	lists, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- sink.Serve(ctx, mails, lists) }()
	t.Cleanup(func() {
		stop()
		require.NoError(t, <-ended)
		require.NoError(t, sink.Close())
	})
	subjects := func() (subjects []string) {
		for _, mail := range sink.List(order, 0) {
			subjects = append(subjects, mail.Subject)
		}
		slices.Sort(subjects)
		return subjects
	}
	require.Eventually(t, func() bool {
		return slices.Equal(subjects(), []string{"Your order " + order, "Your payment of order " + order})
	}, patience, pause)
	require.Eventually(t, func() bool { return count(t, r.servers.pool, "order_confirmations WHERE sent_at IS NOT NULL") == 2 }, patience, pause)
}
