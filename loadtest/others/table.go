package main

import (
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/tidwall/gjson"
)

// order is that of the columns.
var order = []string{"oncepay", built, "setnx", "fiber-lock", "fiber", "none"}

// rows are the lines of the table, with the places of the figures in a campaign's report.
var rows = []struct{ title, figure string }{
	{"faults", "faults"},
	{"attempts", "attempts"},
	{"keys", "score.keys"},
	{"effects", "score.effects"},
	{"**keys with more than one effect**", "score.doubled_keys"},
	{"effects beyond one per key", "score.extra_effects"},
	{"orders charged more than once", "score.double_charges"},
	{"charges without a payment", "score.charges_without_payment"},
	{"**keys with a lost acknowledgement**", "score.lost_answers"},
	{"keys refused, although the effect happened", "score.refused_yet_done"},
	{"**keys with two different answers**", "score.two_answers"},
	{"keys with a 2xx to another request", "score.other_request"},
	{"keys with another account's answer", "score.other_account"},
	{"keys in progress for more than 13 s", "score.stuck"},
}

// printTable prints the scores of campaigns side by side, in Markdown, from their JSON reports.
// Each system has a column, with the sums of its campaigns.
func printTable(paths []string, out io.Writer) error {
	reports := map[string][]gjson.Result{} // by system
	for _, path := range paths {
		raw, err := os.ReadFile(path)
		if err == nil && !gjson.ValidBytes(raw) {
			err = fmt.Errorf("%s is no report", path)
		}
		if err != nil {
			return err
		}
		campaign := gjson.ParseBytes(raw)
		system := campaign.Get("system").Str
		reports[system] = append(reports[system], campaign)
	}
	systems := slices.SortedFunc(maps.Keys(reports), func(a, b string) int { return slices.Index(order, a) - slices.Index(order, b) })
	fmt.Fprintf(out, "| | %s |\n|---|%s\n| seeds |", strings.Join(systems, " | "), strings.Repeat("--:|", len(systems)))
	for _, system := range systems {
		var seeds []string
		for _, campaign := range reports[system] {
			seeds = append(seeds, campaign.Get("seed").Raw)
		}
		fmt.Fprintf(out, " %s |", strings.Join(seeds, ", "))
	}
	for _, row := range rows {
		fmt.Fprintf(out, "\n| %s |", row.title)
		for _, system := range systems {
			sum := int64(0)
			for _, campaign := range reports[system] {
				sum += campaign.Get(row.figure).Int()
			}
			fmt.Fprintf(out, " %d |", sum)
		}
	}
	fmt.Fprintln(out)
	return nil
}
