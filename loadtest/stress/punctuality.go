package main

import (
	"slices"
	"time"

	vegeta "github.com/tsenart/vegeta/v12/lib"
)

// keptShare of the asked rate must have been driven; below it, the latencies
// are those of another, gentler test.
const keptShare = 0.95

// punctuality says whether the load was what was asked for. An attacker that
// is late measures the system at a lower rate, which flatters it.
type punctuality struct {
	pace pacer
	sent map[uint64]time.Time // by sequence number
}

func (p *punctuality) add(r *vegeta.Result) { p.sent[r.Seq] = r.Timestamp }

// punctual is the result, for people and for the JSON.
type punctual struct {
	Asked    float64 `json:"asked_per_second"`
	Achieved float64 `json:"achieved_per_second"`
	P99      float64 `json:"late_p99_ms"` // how late requests were sent
	Max      float64 `json:"late_max_ms"`
	Kept     bool    `json:"kept"`
}

func (p *punctuality) summary() punctual {
	s := punctual{Asked: float64(p.pace.rate)}
	start, ok := p.sent[0]
	if !ok {
		return s
	}
	var late []time.Duration
	for n, at := range p.sent {
		late = append(late, at.Sub(start)-p.pace.due(n))
	}
	slices.Sort(late)
	s.P99, s.Max = ms(late[len(late)*99/100]), ms(late[len(late)-1])
	s.Achieved = s.Asked
	last := uint64(len(p.sent)) - 1
	// The plan's own span, and what it took: a short run that ends with a
	// pair must not seem faster than it was.
	if took := p.sent[last].Sub(start); took > 0 && p.pace.due(last) > 0 {
		s.Achieved = s.Asked * min(1, float64(p.pace.due(last))/float64(took))
	}
	s.Kept = s.Achieved >= keptShare*s.Asked
	return s
}
