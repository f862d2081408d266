package main

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// table is a table of the page. Its String is Markdown whose columns are aligned, so that it can be
// read on a terminal, too.
type table struct {
	command string // that measured it
	header  []string
	rows    [][]string
}

func (t *table) add(cells ...string) { t.rows = append(t.rows, cells) }

func (t table) String() string {
	widths := make([]int, len(t.header))
	for _, row := range append([][]string{t.header}, t.rows...) {
		for i, cell := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	var text strings.Builder
	line := func(cells []string) {
		for i, cell := range cells {
			text.WriteString("| " + cell + strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell)+1))
		}
		text.WriteString("|\n")
	}
	line(t.header)
	for range t.header {
		text.WriteString("|---")
	}
	text.WriteString("|\n")
	for _, row := range t.rows {
		line(row)
	}
	return text.String()
}

// String is the median, with the extremes if there was more than one round.
func (s spread) String() string {
	if s.least == s.most {
		return number(s.median)
	}
	return fmt.Sprintf("%s (%s–%s)", number(s.median), number(s.least), number(s.most))
}

// number has three figures that count, or all of an integer, and commas between the thousands.
func number(f float64) string {
	switch {
	case f == 0:
		return "0"
	case f < 10:
		return strconv.FormatFloat(f, 'f', 2, 64)
	case f < 100:
		return strconv.FormatFloat(f, 'f', 1, 64)
	}
	digits := strconv.FormatFloat(f, 'f', 0, 64)
	for at := len(digits) - 3; at > 0; at -= 3 {
		digits = digits[:at] + "," + digits[at:]
	}
	return digits
}
