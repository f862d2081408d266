// Command table prints the scores of campaigns side by side, in Markdown, from their JSON reports:
//
//	go run ./table ../out/others/*.json
package main

import (
	"cmp"
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

func run(paths []string, out io.Writer) error {
	var reports []report
	for _, path := range paths {
		raw, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		var r report
		if err := json.Unmarshal(raw, &r); err != nil {
			return fmt.Errorf("read %s: %w", path, err)
		}
		reports = append(reports, r)
	}
	write(out, reports)
	return nil
}

// write makes a column for each system, with the sums of its campaigns.
func write(out io.Writer, reports []report) {
	columns := map[string][]report{}
	for _, r := range reports {
		columns[r.System] = append(columns[r.System], r)
	}
	systems := slices.SortedFunc(maps.Keys(columns), func(a, b string) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a, b))
	})
	fmt.Fprintf(out, "| | %s |\n|---|%s\n", strings.Join(systems, " | "), strings.Repeat("--:|", len(systems)))
	line := func(name string, cell func([]report) string) {
		fmt.Fprintf(out, "| %s |", name)
		for _, system := range systems {
			fmt.Fprintf(out, " %s |", cell(columns[system]))
		}
		fmt.Fprintln(out)
	}
	line("seeds", seeds)
	for _, r := range rows {
		line(r.name, func(reports []report) string {
			sum := 0
			for _, one := range reports {
				sum += r.value(one)
			}
			return strconv.Itoa(sum)
		})
	}
}

func seeds(reports []report) string {
	var list []string
	for _, r := range reports {
		list = append(list, strconv.FormatUint(r.Seed, 10))
	}
	slices.Sort(list)
	return strings.Join(list, ", ")
}

func rank(system string) int {
	if i := slices.Index(order, system); i >= 0 {
		return i
	}
	return len(order)
}
