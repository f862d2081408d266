// Package gatewaytest is the suite that every gateway to a payment provider passes, as
// [checkout.Gateway] demands: an outcome is unknown unless the provider said clearly what it did,
// and a call is at most one request on the wire.
package gatewaytest

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/internal/checkout"
)

// patience is the gateways' timeout.
const patience = 20 * time.Second

// Provider is a provider under test.
type Provider struct {
	Handler http.Handler
	// Open returns a gateway to the handler at baseURL. The suite closes it.
	Open func(t *testing.T, baseURL string, timeout time.Duration) Gateway
	// Tokens of cards that are charged, that decline, and that the provider does not know.
	Good, Declining, Unknown string
	// Moved counts the charges and refunds that moved money.
	Moved func() (charges, refunds int)
}

// Gateway is a gateway with its connections.
type Gateway interface {
	checkout.Gateway
	Close()
}

// Run tests the gateway; start returns a new provider for each test.
func Run(t *testing.T, start func(t *testing.T) Provider) {
	for name, test := range map[string]func(*setup){
		"a charge is made once for a key":                 chargeOnce,
		"a declined card is declined again":               declinedAgain,
		"an unknown token leaves nothing":                 unknownToken,
		"a charge whose answer is lost is found":          lostCharge,
		"a charge that did not arrive is not found":       neverArrived,
		"an answer that is cut is unknown":                cutAnswer,
		"an answer that is too late is unknown":           lateAnswer,
		"a call is one request on a connection that dies": oneRequest,
		"one charge for many calls at once":               manyAtOnce,
		"a refund is made once for a key":                 refundOnce,
		"a refund of too much is refused":                 refundTooMuch,
		"a refund whose answer is lost is found":          lostRefund,
		"a look-up reads every page":                      pages,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &setup{T: t, Provider: start(t)}
			server := httptest.NewUnstartedServer(http.HandlerFunc(s.serve))
			server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelInfo)
			server.Start()
			t.Cleanup(server.Close)
			s.url, s.server = server.URL, server
			s.gateway = s.open(patience)
			test(s)
		})
	}
}

// setup is one test's provider, with a wire that can be cut.
type setup struct {
	*testing.T
	Provider
	url     string
	server  *httptest.Server
	gateway Gateway
	posts   atomic.Int64
	trouble atomic.Pointer[http.HandlerFunc] // takes the next POST
}

func (s *setup) open(timeout time.Duration) Gateway {
	gateway := s.Open(s.T, s.url, timeout)
	s.Cleanup(gateway.Close)
	return gateway
}

func (s *setup) serve(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodPost {
		s.posts.Add(1)
		if trouble := s.trouble.Swap(nil); trouble != nil {
			(*trouble)(w, r)
			return
		}
	}
	s.Handler.ServeHTTP(w, r)
}

// next lets the handler take the next POST.
func (s *setup) next(take http.HandlerFunc) { s.trouble.Store(&take) }

// loseAnswer lets the next POST act, and closes its connection after keep bytes of the answer's
// body.
func (s *setup) loseAnswer(keep int) {
	s.next(func(w http.ResponseWriter, r *http.Request) {
		answer := httptest.NewRecorder()
		s.Handler.ServeHTTP(answer, r)
		conn := s.hijack(w)
		defer conn.Close()
		if keep > 0 {
			_, _ = fmt.Fprintf(conn, "HTTP/1.1 %d OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s",
				answer.Code, answer.Body.Len(), answer.Body.Bytes()[:keep])
		}
	})
}

func (s *setup) hijack(w http.ResponseWriter) net.Conn {
	conn, _, err := http.NewResponseController(w).Hijack()
	require.NoError(s, err)
	return conn
}

func (s *setup) charge(key, token string) checkout.ChargeRequest {
	return checkout.ChargeRequest{IdempotencyKey: key, Amount: checkout.Money{Amount: 4200, Currency: "USD"}, Reference: "order-1",
		Token: token, Begun: time.Now()}
}

func refund(charge, key string, amount int64) checkout.RefundRequest {
	return checkout.RefundRequest{IdempotencyKey: key, ChargeID: charge, Reference: "refund-1",
		Amount: checkout.Money{Amount: amount, Currency: "USD"}}
}

func (s *setup) is(want checkout.Outcome, got checkout.GatewayResult) checkout.GatewayResult {
	s.Helper()
	require.Equal(s, want, got.Outcome, "%v %s", got.Cause, got.DeclineCode)
	require.Equal(s, want == checkout.OutcomeUnknown, got.Cause != nil)
	if want == checkout.OutcomeApproved {
		require.NotEmpty(s, got.ProviderID)
	}
	return got
}

func (s *setup) moved(charges, refunds int) {
	s.Helper()
	c, r := s.Moved()
	require.Equal(s, [2]int{charges, refunds}, [2]int{c, r}, "charges and refunds that moved money")
}

func chargeOnce(s *setup) {
	first := s.is(checkout.OutcomeApproved, s.gateway.Charge(s.Context(), s.charge("key-1", s.Good)))
	require.Equal(s, first, s.gateway.Charge(s.Context(), s.charge("key-1", s.Good)))
	require.Equal(s, first, s.gateway.FindCharge(s.Context(), s.charge("key-1", s.Good)))
	s.moved(1, 0)
	require.EqualValues(s, 2, s.posts.Load())
}

func declinedAgain(s *setup) {
	first := s.is(checkout.OutcomeDeclined, s.gateway.Charge(s.Context(), s.charge("key-1", s.Declining)))
	require.NotEmpty(s, first.DeclineCode)
	require.Equal(s, first, s.gateway.Charge(s.Context(), s.charge("key-1", s.Declining)))
	require.Equal(s, first, s.gateway.FindCharge(s.Context(), s.charge("key-1", s.Declining)))
	s.moved(0, 0)
}

func unknownToken(s *setup) {
	first := s.is(checkout.OutcomeAbsent, s.gateway.Charge(s.Context(), s.charge("key-1", s.Unknown)))
	require.Equal(s, "invalid_token", first.DeclineCode)
	s.is(checkout.OutcomeAbsent, s.gateway.FindCharge(s.Context(), s.charge("key-1", s.Unknown)))
	s.moved(0, 0)
}

func lostCharge(s *setup) {
	s.loseAnswer(0)
	s.is(checkout.OutcomeUnknown, s.gateway.Charge(s.Context(), s.charge("key-1", s.Good)))
	found := s.is(checkout.OutcomeApproved, s.gateway.FindCharge(s.Context(), s.charge("key-1", s.Good)))
	require.Equal(s, found, s.gateway.Charge(s.Context(), s.charge("key-1", s.Good)))
	s.moved(1, 0)
}

func neverArrived(s *setup) {
	s.next(func(w http.ResponseWriter, _ *http.Request) { _ = s.hijack(w).Close() })
	s.is(checkout.OutcomeUnknown, s.gateway.Charge(s.Context(), s.charge("key-1", s.Good)))
	s.is(checkout.OutcomeAbsent, s.gateway.FindCharge(s.Context(), s.charge("key-1", s.Good)))
	s.moved(0, 0)
	s.is(checkout.OutcomeApproved, s.gateway.Charge(s.Context(), s.charge("key-1", s.Good)))
	s.moved(1, 0)
}

func cutAnswer(s *setup) {
	s.loseAnswer(20)
	s.is(checkout.OutcomeUnknown, s.gateway.Charge(s.Context(), s.charge("key-1", s.Good)))
	s.moved(1, 0)
	s.is(checkout.OutcomeApproved, s.gateway.FindCharge(s.Context(), s.charge("key-1", s.Good)))
}

func lateAnswer(s *setup) {
	release := make(chan struct{})
	defer close(release)
	s.next(func(w http.ResponseWriter, r *http.Request) {
		s.Handler.ServeHTTP(httptest.NewRecorder(), r)
		<-release
		_ = s.hijack(w).Close()
	})
	hasty := s.open(time.Second)
	late := s.is(checkout.OutcomeUnknown, hasty.Charge(s.Context(), s.charge("key-1", s.Good)))
	require.ErrorIs(s, late.Cause, context.DeadlineExceeded)
	s.moved(1, 0)
}

// A second request on a connection that the provider has closed is sent again by net/http if it
// may.
func oneRequest(s *setup) {
	for call := range int64(6) {
		key := fmt.Sprintf("key-%d", call)
		if call%2 == 1 {
			s.next(func(w http.ResponseWriter, _ *http.Request) { _ = s.hijack(w).Close() })
		}
		result := s.gateway.Charge(s.Context(), s.charge(key, s.Good))
		require.Equal(s, call+1, s.posts.Load(), "one call, one request on the wire")
		require.Equal(s, call%2 == 1, result.Outcome == checkout.OutcomeUnknown, result.Cause)
	}
	s.moved(3, 0)
}

func manyAtOnce(s *setup) {
	var group sync.WaitGroup
	results := make([]checkout.GatewayResult, 12)
	for i := range results {
		group.Go(func() { results[i] = s.gateway.Charge(s.Context(), s.charge("key-1", s.Good)) })
	}
	group.Wait()
	approved := map[string]bool{}
	for _, r := range results {
		switch r.Outcome {
		case checkout.OutcomeApproved:
			approved[r.ProviderID] = true
		case checkout.OutcomeUnknown: // a provider may refuse a key that is in use
		default:
			require.Fail(s, "one of many calls at once", "%+v", r)
		}
	}
	require.Len(s, approved, 1)
	s.moved(1, 0)
}

func refundOnce(s *setup) {
	charge := s.is(checkout.OutcomeApproved, s.gateway.Charge(s.Context(), s.charge("key-1", s.Good))).ProviderID
	s.is(checkout.OutcomeAbsent, s.gateway.FindRefund(s.Context(), refund(charge, "refund-1", 1200)))
	first := s.is(checkout.OutcomeApproved, s.gateway.Refund(s.Context(), refund(charge, "refund-1", 1200)))
	require.Equal(s, first, s.gateway.Refund(s.Context(), refund(charge, "refund-1", 1200)))
	require.Equal(s, first, s.gateway.FindRefund(s.Context(), refund(charge, "refund-1", 1200)))
	s.moved(1, 1)
	second := s.is(checkout.OutcomeApproved, s.gateway.Refund(s.Context(), refund(charge, "refund-2", 3000)))
	require.NotEqual(s, first.ProviderID, second.ProviderID)
	s.moved(1, 2)
}

func refundTooMuch(s *setup) {
	charge := s.is(checkout.OutcomeApproved, s.gateway.Charge(s.Context(), s.charge("key-1", s.Good))).ProviderID
	s.is(checkout.OutcomeApproved, s.gateway.Refund(s.Context(), refund(charge, "refund-1", 4200)))
	refused := s.gateway.Refund(s.Context(), refund(charge, "refund-2", 1))
	require.Contains(s, []checkout.Outcome{checkout.OutcomeDeclined, checkout.OutcomeAbsent}, refused.Outcome, refused.Cause)
	require.NotEmpty(s, refused.DeclineCode)
	s.moved(1, 1)
}

func lostRefund(s *setup) {
	charge := s.is(checkout.OutcomeApproved, s.gateway.Charge(s.Context(), s.charge("key-1", s.Good))).ProviderID
	s.loseAnswer(0)
	s.is(checkout.OutcomeUnknown, s.gateway.Refund(s.Context(), refund(charge, "refund-1", 4200)))
	found := s.is(checkout.OutcomeApproved, s.gateway.FindRefund(s.Context(), refund(charge, "refund-1", 4200)))
	require.Equal(s, found, s.gateway.Refund(s.Context(), refund(charge, "refund-1", 4200)))
	s.moved(1, 1)
}

// Fully refunded in many parts, after the charge that is looked for was followed by many others.
func pages(s *setup) {
	first := s.is(checkout.OutcomeApproved, s.gateway.Charge(s.Context(), s.charge("key-0", s.Good)))
	refunded := s.is(checkout.OutcomeApproved, s.gateway.Refund(s.Context(), refund(first.ProviderID, "refund-0", 10)))
	for i := 1; i <= 130; i++ {
		s.is(checkout.OutcomeApproved, s.gateway.Charge(s.Context(), s.charge(fmt.Sprintf("key-%d", i), s.Good)))
		s.is(checkout.OutcomeApproved, s.gateway.Refund(s.Context(), refund(first.ProviderID, fmt.Sprintf("refund-%d", i), 10)))
	}
	require.Equal(s, first, s.gateway.FindCharge(s.Context(), s.charge("key-0", s.Good)))
	require.Equal(s, refunded, s.gateway.FindRefund(s.Context(), refund(first.ProviderID, "refund-0", 10)))
	s.is(checkout.OutcomeAbsent, s.gateway.FindCharge(s.Context(), s.charge("key-none", s.Good)))
	s.is(checkout.OutcomeAbsent, s.gateway.FindRefund(s.Context(), refund(first.ProviderID, "refund-none", 10)))
}
