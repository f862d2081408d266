package app

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"time"

	"github.com/oncepay/oncepay/internal/app/failpoint"
)

const (
	// checkTimeout bounds one check of /readyz: below the timeouts of those who ask, which are
	// seconds.
	checkTimeout = time.Second

	// opsTimeout bounds any request to the operations server; the slowest is a scrape of some
	// hundred lines.
	opsTimeout = 10 * time.Second

	// opsStopTimeout bounds the wait for the last scrape.
	opsStopTimeout = time.Second
)

func (a *App) newOpsServer() *http.Server {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /livez", func(w http.ResponseWriter, _ *http.Request) {
		writeJSON(w, http.StatusOK, map[string]string{"status": "alive", "replica": a.cfg.Replica})
	})
	mux.HandleFunc("GET /readyz", a.serveReadyz)
	mux.Handle("GET /metrics", a.metrics.Handler())
	failpoint.Routes(mux)
	return &http.Server{
		Handler: mux, ReadHeaderTimeout: headerTimeout, ReadTimeout: opsTimeout, WriteTimeout: opsTimeout, IdleTimeout: idleTimeout,
		MaxHeaderBytes: maxHeaderBytes, ErrorLog: slog.NewLogLogger(a.log.Handler(), slog.LevelDebug),
	}
}

// readiness is the answer of /readyz.
type readiness struct {
	Status  string           `json:"status"` // ready, starting, draining, unavailable
	Replica string           `json:"replica"`
	Checks  map[string]check `json:"checks,omitempty"`
}

// check is what became of one server that we need.
type check struct {
	OK         bool    `json:"ok"`
	Required   bool    `json:"required"`
	DurationMS float64 `json:"duration_ms"`
	Error      string  `json:"error,omitempty"`
}

// serveReadyz reports whether requests should be sent here. PostgreSQL decides: without Redis the
// routes that fail open still work.
func (a *App) serveReadyz(w http.ResponseWriter, r *http.Request) {
	answer := readiness{Status: "ready", Replica: a.cfg.Replica}
	switch a.life.phase.Load() {
	case phaseStarting:
		answer.Status = "starting"
	case phaseDraining:
		answer.Status = "draining"
	default:
		database := runCheck(r.Context(), true, a.servers.pool.Ping)
		answer.Checks = map[string]check{"postgres": database}
		if a.servers.redis != nil {
			answer.Checks["redis"] = runCheck(r.Context(), false, a.servers.pingRedis)
		}
		if !database.OK {
			answer.Status = "unavailable"
		}
	}
	status := http.StatusOK
	if answer.Status != "ready" {
		status = http.StatusServiceUnavailable
	}
	writeJSON(w, status, answer)
}

func runCheck(ctx context.Context, required bool, ask func(context.Context) error) check {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	began := time.Now()
	err := ask(ctx)
	c := check{OK: err == nil, Required: required, DurationMS: milliseconds(time.Since(began))}
	if err != nil {
		c.Error = err.Error()
	}
	return c
}

func writeJSON(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) // the client has gone, and needs no answer
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
