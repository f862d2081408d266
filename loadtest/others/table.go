package main

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
)

// order is that of the columns.
var order = []string{"oncepay", built, "setnx", "fiber-lock", "fiber", "none"}

// rows are the lines of the table, with the names of the figures in a campaign's report.
var rows = []struct{ title, figure string }{
	{"faults", "faults"},
	{"attempts", "attempts"},
	{"keys", "keys"},
	{"effects", "effects"},
	{"**keys with more than one effect**", "doubled_keys"},
	{"effects beyond one per key", "extra_effects"},
	{"orders charged more than once", "double_charges"},
	{"charges without a payment", "charges_without_payment"},
	{"**keys with a lost acknowledgement**", "lost_answers"},
	{"keys refused, although the effect happened", "refused_yet_done"},
	{"**keys with two different answers**", "two_answers"},
	{"keys with a 2xx to another request", "other_request"},
	{"keys with another account's answer", "other_account"},
	{"keys in progress for more than 13 s", "stuck"},
}

// printTable prints the scores of campaigns side by side, in Markdown, from their JSON reports.
// Each system has a column, with the sums of its campaigns.
func printTable(paths []string, out io.Writer) error {
	seeds, sums := map[string][]string{}, map[string]map[string]int{} // by system
	for _, path := range paths {
		raw, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		var campaign struct {
			System                 string
			Seed, Faults, Attempts int
			Score                  map[string]int
		}
		if err := json.Unmarshal(raw, &campaign); err != nil {
			return fmt.Errorf("read %s: %w", path, err)
		}
		system := campaign.System
		seeds[system] = append(seeds[system], fmt.Sprint(campaign.Seed))
		if sums[system] == nil {
			sums[system] = map[string]int{}
		}
		sums[system]["faults"] += campaign.Faults
		sums[system]["attempts"] += campaign.Attempts
		for figure, n := range campaign.Score {
			sums[system][figure] += n
		}
	}
	systems := slices.SortedFunc(maps.Keys(sums), func(a, b string) int { return slices.Index(order, a) - slices.Index(order, b) })
	fmt.Fprintf(out, "| | %s |\n|---|%s\n| seeds |", strings.Join(systems, " | "), strings.Repeat("--:|", len(systems)))
	for _, system := range systems {
		fmt.Fprintf(out, " %s |", strings.Join(seeds[system], ", "))
	}
	for _, row := range rows {
		fmt.Fprintf(out, "\n| %s |", row.title)
		for _, system := range systems {
			fmt.Fprintf(out, " %d |", sums[system][row.figure])
		}
	}
	fmt.Fprintln(out)
	return nil
}
