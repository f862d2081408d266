package psp

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/oncepay/oncepay/internal/checkout"
	"github.com/oncepay/oncepay/internal/pspsim"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience is the gateway's timeout where a test does not expect to meet it.
const patience = 20 * time.Second

// quiet starts a server that does not log dropped connections.
func quiet(t *testing.T, handler http.Handler) *httptest.Server {
	t.Helper()
	server := httptest.NewUnstartedServer(handler)
	server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelInfo)
	server.Start()
	t.Cleanup(server.Close)
	return server
}

func gatewayTo(t *testing.T, url string, timeout time.Duration) *Gateway {
	t.Helper()
	gateway := NewGateway(url, timeout)
	t.Cleanup(gateway.Close)
	return gateway
}

// provider is a real simulator and a gateway to it.
type provider struct {
	t       *testing.T
	gateway *Gateway
	url     string
	journal string
	sim     *pspsim.Server
	server  *httptest.Server
	wire    *atomic.Int64 // POSTs that arrived
}

func startProvider(t *testing.T, timeout time.Duration) *provider {
	t.Helper()
	p := &provider{t: t, journal: filepath.Join(t.TempDir(), "journal"), wire: new(atomic.Int64)}
	p.start()
	p.gateway = gatewayTo(t, p.url, timeout)
	return p
}

func (p *provider) start() {
	p.t.Helper()
	sim, err := pspsim.New(p.journal, slog.New(slog.DiscardHandler))
	require.NoError(p.t, err)
	p.t.Cleanup(func() { _ = sim.Close() }) // a restart has closed it already
	p.sim = sim
	p.server = quiet(p.t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			p.wire.Add(1)
		}
		sim.ServeHTTP(w, r)
	}))
	p.url = p.server.URL
}

// restart puts a new simulator on the same journal.
func (p *provider) restart() {
	p.t.Helper()
	p.server.Close()
	require.NoError(p.t, p.sim.Close())
	p.start()
	p.gateway = gatewayTo(p.t, p.url, patience)
}

type listed struct {
	ID       string `json:"id"`
	Status   string `json:"status"`
	Attempts int    `json:"attempts"`
}

func (p *provider) list(path string) []listed {
	p.t.Helper()
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: patience}
	response, err := client.Get(p.url + path)
	require.NoError(p.t, err)
	defer response.Body.Close()
	var body struct {
		Data []listed `json:"data"`
	}
	require.NoError(p.t, json.UnmarshalRead(response.Body, &body))
	return body.Data
}

func chargeWith(token string) checkout.ChargeRequest {
	return checkout.ChargeRequest{
		IdempotencyKey: "key-1", Amount: checkout.Money{Amount: 4200, Currency: "USD"}, Reference: "order-1", Token: token,
	}
}

func refundOf(charge, key string, amount int64) checkout.RefundRequest {
	return checkout.RefundRequest{
		IdempotencyKey: key, ChargeID: charge, Amount: checkout.Money{Amount: amount, Currency: "USD"}, Reference: "refund-1",
	}
}

// rawServer answers each connection with script, below HTTP.
func rawServer(t *testing.T, script func(conn net.Conn)) (url string) {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, listener.Close()) })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				_ = conn.SetDeadline(time.Now().Add(patience))
				script(conn)
			}()
		}
	}()
	return "http://" + listener.Addr().String()
}
