package main

import (
	"net/http"
	"time"

	vegeta "github.com/tsenart/vegeta/v12/lib"

	"github.com/oncepay/oncepay/loadtest/audit"
)

// row counts the requests of one kind.
type row struct {
	Kind       kind    `json:"kind"`
	Requests   int     `json:"requests"`
	OK         int     `json:"ok"`
	Unexpected int     `json:"unexpected"`
	New        int     `json:"new"`      // 201, done now
	Replayed   int     `json:"replayed"` // 201, done before
	InProgress int     `json:"in_progress"`
	Refused    int     `json:"refused"` // 422
	P50        float64 `json:"p50_ms"`
	P95        float64 `json:"p95_ms"`
	P99        float64 `json:"p99_ms"`
	Max        float64 `json:"max_ms"`

	metrics vegeta.Metrics
}

func newRow(k kind) *row { return &row{Kind: k} }

func (r *row) add(result *vegeta.Result, a audit.Answer, unexpected bool) {
	r.metrics.Add(result)
	r.Requests++
	if unexpected {
		r.Unexpected++
	} else {
		r.OK++
	}
	switch {
	case a.Status == http.StatusCreated && a.Replayed:
		r.Replayed++
	case a.Status == http.StatusCreated:
		r.New++
	case a.Status == http.StatusConflict:
		r.InProgress++
	case a.Status == http.StatusUnprocessableEntity:
		r.Refused++
	}
}

// close computes the latencies of all answers that were added.
func (r *row) close() {
	r.metrics.Close()
	l := r.metrics.Latencies
	r.P50, r.P95, r.P99, r.Max = ms(l.P50), ms(l.P95), ms(l.P99), ms(l.Max)
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
