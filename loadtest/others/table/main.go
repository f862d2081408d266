// Command table prints the scores of campaigns side by side, in Markdown, from their JSON reports:
//
//	go run ./table ../out/others/*.json
package main

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/oncepay/oncepay/loadtest/faults/verify"
)

// report is what is taken from a campaign's report.
type report struct {
	System   string       `json:"system"`
	Seed     uint64       `json:"seed"`
	Faults   int          `json:"faults"`
	Attempts int          `json:"attempts"`
	Score    verify.Score `json:"score"`
}

// order is that of the columns; systems that are not in it come last.
var order = []string{"oncepay", "authority", "setnx", "fiber-lock", "fiber", "none"}

// row is a line of the table.
type row struct {
	name  string
	value func(report) int
}

var rows = []row{
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

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "table:", err)
		os.Exit(1)
	}
}

// run makes a column for each system, with the sums of its campaigns.
func run(paths []string, out io.Writer) error {
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
	others := slices.DeleteFunc(slices.Sorted(maps.Keys(campaigns)), func(system string) bool { return slices.Contains(order, system) })
	systems := slices.DeleteFunc(append(slices.Clone(order), others...), func(system string) bool { return campaigns[system] == nil })
	fmt.Fprintf(out, "| | %s |\n|---|%s\n| seeds |", strings.Join(systems, " | "), strings.Repeat("--:|", len(systems)))
	for _, system := range systems {
		var seeds []string
		for _, r := range campaigns[system] {
			seeds = append(seeds, strconv.FormatUint(r.Seed, 10))
		}
		slices.Sort(seeds)
		fmt.Fprintf(out, " %s |", strings.Join(seeds, ", "))
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
