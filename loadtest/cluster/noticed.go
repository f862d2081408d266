package main

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/oncepay/oncepay/loadtest/faults/journal"
	"github.com/oncepay/oncepay/loadtest/faults/verify"
)

const header = "| step | seconds | attempts | failed | for | slowest request, with its retries |\n|---|---|---|---|---|---|\n"

// noticed is the line of a step: what happened to the attempts that began in its time, and how long
// the slowest of the requests took that one of them ended.
func noticed(name string, attempts []journal.Attempt, from, until time.Duration) string {
	count, kinds := 0, map[string]int{}
	var first, last, slowest time.Duration // the first two of the failures
	for _, all := range verify.History(attempts) {
		for _, a := range all {
			if a.Invoke < from || a.Invoke >= until {
				continue
			}
			count++
			if kind := failure(a); kind != "" {
				if kinds[kind]++; first == 0 || a.Invoke < first {
					first = a.Invoke
				}
				last = max(last, a.Return)
			}
			if a.Outcome().Kept() {
				slowest = max(slowest, a.Return-all[0].Invoke) // a client sends one attempt after the other
			}
		}
	}
	return fmt.Sprintf("| %s | %.0f | %d | %s | %.1f s | %.1f s |",
		name, (until - from).Seconds(), count, listed(kinds), (last - first).Seconds(), slowest.Seconds())
}

// failure names why an attempt has no answer of the service, or "".
func failure(a journal.Attempt) string {
	switch {
	case strings.Contains(a.Error, "refused"):
		return "connections refused"
	case strings.Contains(a.Error, "reset"), strings.Contains(a.Error, "EOF"):
		return "connections broken"
	case a.Error != "":
		return "without an answer in time"
	case a.Status >= http.StatusInternalServerError:
		return strings.TrimSpace(fmt.Sprintf("× %d %s", a.Status, a.Code))
	}
	return ""
}

// retried says what became of the keys of which an attempt failed.
func retried(attempts []journal.Attempt) string {
	failed, ends := 0, map[string]int{}
	for _, all := range verify.History(attempts) {
		if !slices.ContainsFunc(all, func(a journal.Attempt) bool { return failure(a) != "" }) {
			continue
		}
		failed++
		end := "undecided"
		if n := slices.IndexFunc(all, func(a journal.Attempt) bool { return a.Outcome().Kept() }); n >= 0 {
			end = fmt.Sprintf("× %d", all[n].Status)
		}
		ends[end]++
	}
	return fmt.Sprintf("keys of which an attempt failed: %d; their retries got: %s", failed, listed(ends))
}

func listed(counts map[string]int) string {
	if len(counts) == 0 {
		return "0"
	}
	var all []string
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		all = append(all, fmt.Sprintf("%d %s", counts[name], name))
	}
	return strings.Join(all, ", ")
}
