package report

import (
	"math"
	"time"
)

// Log is a logarithmic axis of latencies.
type Log struct{ From, To time.Duration }

// maxFine is how long, as a ratio, an axis is that has marks at 1, 2 and 5 instead of 1 alone.
const maxFine = 100

// Around begins at the last round value up to the fastest, and ends at the first one from the
// slowest on.
func Around(fastest, slowest time.Duration) Log {
	values := roundValues()
	l := Log{From: values[0]}
	for _, l.To = range values[1:] {
		if l.To > fastest && l.To >= slowest {
			break
		}
		if l.To <= fastest && l.To < values[len(values)-1] {
			l.From = l.To
		}
	}
	return l
}

// Part is the place on the axis, from 0 to 1. What is beyond an end is drawn there.
func (l Log) Part(d time.Duration) float64 {
	return math.Log(float64(min(max(d, l.From), l.To))/float64(l.From)) / math.Log(float64(l.To)/float64(l.From))
}

// Marks are round values.
func (l Log) Marks() (marks []time.Duration) {
	for i, d := range roundValues() {
		if d >= l.From && d <= l.To && (i%3 == 0 || l.To <= maxFine*l.From) {
			marks = append(marks, d)
		}
	}
	return marks
}

// roundValues are 1, 2 and 5 µs, and so on up to 500 s.
func roundValues() (values []time.Duration) {
	for power := time.Microsecond; power <= 100*time.Second; power *= 10 {
		values = append(values, power, 2*power, 5*power)
	}
	return values
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
