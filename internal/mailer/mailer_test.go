package mailer

import (
	"bufio"
	"context"
	"io"
	"log/slog"
	"net"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/internal/background"
	"github.com/oncepay/oncepay/internal/stack/mailsink"
)

// memory is a store. A mail that is taken is due again when a test makes it so.
type memory struct {
	mails    []Mail
	due      []int64
	outcomes map[int64]Outcome
	writes   int // of outcomes
}

func (m *memory) MailsOverdue(context.Context) (time.Duration, bool, error) {
	return time.Hour, len(m.due) > 0, nil
}

func (m *memory) TakeMails(context.Context, int, time.Duration) (taken []Mail, err error) {
	for _, id := range m.due {
		m.mails[id].Attempts++
		taken = append(taken, m.mails[id])
	}
	m.due = nil
	return taken, nil
}

func (m *memory) SettleMails(_ context.Context, settled []Settled) error {
	m.writes++
	for _, s := range settled {
		m.outcomes[s.ID] = s.Outcome
	}
	return nil
}

// post is a sink with a mailer of these recipients' mails.
type post struct {
	*Mailer
	t     *testing.T
	store *memory
	sink  *mailsink.Sink
}

func setup(t *testing.T, recipients ...string) *post {
	t.Helper()
	sink, err := mailsink.Open(filepath.Join(t.TempDir(), "mails"))
	require.NoError(t, err)
	mails, lists := listen(t), listen(t)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- sink.Serve(ctx, mails, lists) }()
	t.Cleanup(func() {
		stop()
		require.NoError(t, <-ended)
		require.NoError(t, sink.Close())
	})
	store := &memory{outcomes: map[int64]Outcome{}}
	for i, to := range recipients {
		store.mails = append(store.mails, Mail{ID: int64(i), EventID: uuid.New(), Event: "order.placed", Order: uuid.New(), Amount: 3900,
			Currency: "USD", Name: "Ada", Address: to, Created: time.Now()})
		store.due = append(store.due, int64(i))
	}
	p := &post{t: t, store: store, sink: sink}
	p.connect("smtp://" + mails.Addr().String())
	return p
}

func (p *post) connect(url string) {
	p.t.Helper()
	server, err := NewServer(url, "Shop <shop@example.com>")
	require.NoError(p.t, err)
	p.Mailer = New(p.store, server, background.Schedule{Log: slog.New(slog.DiscardHandler)})
}

// received are the mails that the sink has.
func (p *post) received() []mailsink.Mail {
	return p.sink.List("", 0)
}

func (p *post) verdicts() (verdicts []Verdict) {
	for i := range p.store.mails {
		verdicts = append(verdicts, p.store.outcomes[int64(i)].Verdict)
	}
	return verdicts
}

func (s *Server) addr() string { return net.JoinHostPort(s.host, strconv.Itoa(s.port)) }

func listen(t *testing.T) net.Listener {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	return listener
}

func TestMailer_SendsAConfirmationUnderTheEventsID(t *testing.T) {
	t.Parallel()
	p := setup(t, "ada@example.com")
	n, err := p.RunOnce(t.Context())
	require.NoError(t, err)
	require.Equal(t, 1, n)
	mail := p.store.mails[0]
	got := p.received()
	require.Len(t, got, 1)
	got[0].Received = time.Time{}
	require.Equal(t, mailsink.Mail{MessageID: mail.EventID.String() + "@example.com", To: `"Ada" <ada@example.com>`, Recipient: "ada@example.com",
		Subject: "Your order " + mail.Order.String(), Text: "Hello Ada,\n\nwe have your order " + mail.Order.String() + " over 39.00 USD.\n"}, got[0])
	require.Equal(t, Outcome{Verdict: Sent}, p.store.outcomes[0])
}

// TestMailer_WaitsForNoMailThatTheServerRefuses: the others of the batch are sent.
func TestMailer_WaitsForNoMailThatTheServerRefuses(t *testing.T) {
	t.Parallel()
	p := setup(t, "nobody@example.com", "ada@example.com", "later@example.com", "bob@example.com")
	n, err := p.RunOnce(t.Context())
	require.NoError(t, err)
	require.Equal(t, 4, n)
	require.Equal(t, []Verdict{Refused, Sent, PutOff, Sent}, p.verdicts())
	require.Len(t, p.received(), 2)
	require.Contains(t, p.store.outcomes[0].Reason, "550 5.1.1")
	require.Contains(t, p.store.outcomes[2].Reason, "450 4.2.1")
	for _, outcome := range p.store.outcomes {
		require.NotContains(t, outcome.Reason, "@", "no address is logged")
	}
	require.Equal(t, map[Verdict]int64{Sent: 2, PutOff: 1, Refused: 1}, p.Stats())
}

// TestMailer_NotesOutcomesTogether: a statement for each mail would cost PostgreSQL more than the
// mail's order does.
func TestMailer_NotesOutcomesTogether(t *testing.T) {
	t.Parallel()
	for every, writes := range map[time.Duration]int{time.Hour: 1, 0: 3} {
		p := setup(t, "ada@example.com", "bob@example.com", "eve@example.com")
		p.settleEvery = every
		_, err := p.RunOnce(t.Context())
		require.NoError(t, err)
		require.Equal(t, []Verdict{Sent, Sent, Sent}, p.verdicts())
		require.Equal(t, writes, p.store.writes)
	}
}

func TestMailer_GivesUpAfterDays(t *testing.T) {
	t.Parallel()
	p := setup(t, "later@example.com")
	p.store.mails[0].Created = time.Now().Add(-giveUpAfter - time.Second)
	_, err := p.RunOnce(t.Context())
	require.NoError(t, err)
	require.Equal(t, Refused, p.store.outcomes[0].Verdict)
}

func TestMailer_TakesNothingWhileTheServerIsAway(t *testing.T) {
	t.Parallel()
	p := setup(t, "ada@example.com")
	gone := listen(t)
	require.NoError(t, gone.Close())
	p.connect("smtp://" + gone.Addr().String())
	_, err := p.RunOnce(t.Context())
	require.ErrorContains(t, err, "reach the mail server")
	require.Len(t, p.store.due, 1)
	require.Zero(t, p.store.mails[0].Attempts)
}

func TestMailer_KeepsMailsOfAFullServer(t *testing.T) {
	t.Parallel()
	p := setup(t, "ada@example.com", "bob@example.com")
	p.sink.Full.Store(true)
	_, err := p.RunOnce(t.Context())
	require.NoError(t, err)
	require.Equal(t, []Verdict{PutOff, PutOff}, p.verdicts())
	require.Contains(t, p.store.outcomes[0].Reason, "452 4.3.1")
	require.Positive(t, p.store.outcomes[0].Pause)

	p.sink.Full.Store(false)
	p.store.due = []int64{0, 1}
	_, err = p.RunOnce(t.Context())
	require.NoError(t, err)
	require.Equal(t, []Verdict{Sent, Sent}, p.verdicts())
	require.Len(t, p.received(), 2)
}

// TestMailer_SendsAgainUnderOneMessageID if the server's answer is lost: it has the mail, and
// nobody knows.
func TestMailer_SendsAgainUnderOneMessageID(t *testing.T) {
	t.Parallel()
	p := setup(t, "ada@example.com", "bob@example.com")
	direct := p.server
	p.connect("smtp://" + losing(t, direct.addr()))
	n, err := p.RunOnce(t.Context())
	require.ErrorContains(t, err, "no answer")
	require.Equal(t, 1, n)
	require.Equal(t, []Verdict{PutOff, NotBegun}, p.verdicts(), "the second one waits for another connection")
	require.Len(t, p.received(), 1, "the server has it")

	p.store.due = []int64{0}
	p.Mailer.server = direct
	_, err = p.RunOnce(t.Context())
	require.NoError(t, err)
	got := p.received()
	require.Len(t, got, 2)
	require.Equal(t, got[0].MessageID, got[1].MessageID)
	require.Equal(t, got[0].Text, got[1].Text)
}

// losing passes a connection on to an address, until the server answers that it has a mail.
func losing(t *testing.T, addr string) string {
	t.Helper()
	front := listen(t)
	t.Cleanup(func() { _ = front.Close() })
	go func() {
		client, err := front.Accept()
		if err != nil {
			return
		}
		defer func() { _ = client.Close() }()
		server, err := net.Dial("tcp", addr)
		if err != nil {
			return
		}
		defer func() { _ = server.Close() }()
		go func() { _, _ = io.Copy(server, client) }()
		for lines := bufio.NewReader(server); ; {
			line, err := lines.ReadString('\n')
			if err != nil || strings.Contains(line, "queued") {
				return
			}
			if _, err := io.WriteString(client, line); err != nil {
				return
			}
		}
	}()
	return front.Addr().String()
}

func TestMailer_BeginsNoMailAfterTheOrderToStop(t *testing.T) {
	t.Parallel()
	p := setup(t, "ada@example.com", "bob@example.com")
	ctx, stop := context.WithCancel(t.Context())
	p.Mailer.store = stopping{p.store, stop}
	_, err := p.RunOnce(ctx)
	require.NoError(t, err)
	require.Equal(t, []Verdict{NotBegun, NotBegun}, p.verdicts())
	require.Empty(t, p.received())
}

// stopping gives the order once mails are taken.
type stopping struct {
	*memory
	stop func()
}

func (s stopping) TakeMails(ctx context.Context, limit int, taken time.Duration) ([]Mail, error) {
	defer s.stop()
	return s.memory.TakeMails(ctx, limit, taken)
}

func TestMailer_SendsNothingInClearIfTLSIsRequired(t *testing.T) {
	t.Parallel()
	p := setup(t, "ada@example.com")
	addr := p.server.addr()
	for _, scheme := range []string{"smtp+starttls", "smtps"} {
		p.connect(scheme + "://" + addr)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second) // the sink waits for a command, and smtps for TLS
		_, err := p.RunOnce(ctx)
		cancel()
		require.Error(t, err, scheme)
	}
	require.Len(t, p.store.due, 1)
	require.Empty(t, p.received())
}

func TestPause_DoublesUpToItsBound(t *testing.T) {
	t.Parallel()
	for attempts, longest := range map[int]time.Duration{1: 2 * time.Second, 3: 8 * time.Second, 10: longestPause, 1 << 30: longestPause} {
		pause := pauseAfter(attempts)
		require.GreaterOrEqual(t, pause, longest/2)
		require.Less(t, pause, longest)
	}
	require.Greater(t, takenFor, beginWithin+2*mailTimeout, "a slow server gets no copies because of the time")
}
