package main

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/oncepay/oncepay/loadtest/faults/verify"
)

// report is what is taken from a campaign's report.
type report struct {
	System   string       `json:"system"`
	Seed     int          `json:"seed"`
	Faults   int          `json:"faults"`
	Attempts int          `json:"attempts"`
	Score    verify.Score `json:"score"`
}

// order is that of the columns.
var order = []string{"oncepay", built, "setnx", "fiber-lock", "fiber", "none"}

// rows are the lines of the table.
var rows = []struct {
	name  string
	value func(report) int
}{
	{"faults", func(r report) int { return r.Faults }},
	{"attempts", func(r report) int { return r.Attempts }},
	{"keys", func(r report) int { return r.Score.Keys }},
	{"effects", func(r report) int { return r.Score.Effects }},
	{"**keys with more than one effect**", func(r report) int { return r.Score.DoubledKeys }},
	{"effects beyond one per key", func(r report) int { return r.Score.ExtraEffects }},
	{"orders charged more than once", func(r report) int { return r.Score.DoubleCharges }},
	{"charges without a payment", func(r report) int { return r.Score.ChargesWithoutPayment }},
	{"**keys with a lost acknowledgement**", func(r report) int { return r.Score.LostAnswers }},
	{"keys refused, although the effect happened", func(r report) int { return r.Score.RefusedYetDone }},
	{"**keys with two different answers**", func(r report) int { return r.Score.TwoAnswers }},
	{"keys with a 2xx to another request", func(r report) int { return r.Score.OtherRequest }},
	{"keys with another account's answer", func(r report) int { return r.Score.OtherAccount }},
	{"keys in progress for more than 13 s", func(r report) int { return r.Score.Stuck }},
}

// printTable prints the scores of campaigns side by side, in Markdown, from their JSON reports.
// Each system has a column, with the sums of its campaigns.
func printTable(paths []string, out io.Writer) error {
	campaigns := map[string][]report{} // by system
	for _, path := range paths {
		raw, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		var r report
		if err := json.Unmarshal(raw, &r); err != nil {
			return fmt.Errorf("read %s: %w", path, err)
		}
		campaigns[r.System] = append(campaigns[r.System], r)
	}
	systems := slices.SortedFunc(maps.Keys(campaigns), func(a, b string) int { return slices.Index(order, a) - slices.Index(order, b) })
	fmt.Fprintf(out, "| | %s |\n|---|%s\n| seeds |", strings.Join(systems, " | "), strings.Repeat("--:|", len(systems)))
	for _, system := range systems {
		var seeds []int
		for _, r := range campaigns[system] {
			seeds = append(seeds, r.Seed)
		}
		slices.Sort(seeds)
		fmt.Fprintf(out, " %s |", strings.ReplaceAll(strings.Trim(fmt.Sprint(seeds), "[]"), " ", ", "))
	}
	for _, row := range rows {
		fmt.Fprintf(out, "\n| %s |", row.name)
		for _, system := range systems {
			sum := 0
			for _, r := range campaigns[system] {
				sum += row.value(r)
			}
			fmt.Fprintf(out, " %d |", sum)
		}
	}
	fmt.Fprintln(out)
	return nil
}
