package report

import (
	"math"
	"time"
)

// Log is a logarithmic axis of latencies.
type Log struct{ From, To time.Duration }

// Part is the place on the axis, from 0 to 1. What is beyond an end is drawn there.
func (l Log) Part(d time.Duration) float64 {
	return math.Log(float64(min(max(d, l.From), l.To))/float64(l.From)) / math.Log(float64(l.To)/float64(l.From))
}

// Marks are the powers of ten.
func (l Log) Marks() (marks []time.Duration) {
	for d := time.Microsecond; d <= l.To; d *= 10 {
		if d >= l.From {
			marks = append(marks, d)
		}
	}
	return marks
}

// Marks are round times up to the length, at least so far from each other.
func Marks(length, distance time.Duration) (marks []time.Duration) {
	var step time.Duration
	for _, round := range []time.Duration{1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600} {
		if step = round * time.Second; step >= distance {
			break
		}
	}
	for at := time.Duration(0); at <= length; at += step {
		marks = append(marks, at)
	}
	return marks
}

// Percentile is the smallest value that so many percent of the values do not exceed. They are
// sorted, and there is at least one.
func Percentile(sorted []time.Duration, percent int) time.Duration {
	return sorted[max(0, (len(sorted)*percent+99)/100-1)]
}

// Milliseconds are those of a duration, down to a microsecond.
func Milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
