// Command recording writes an SVG that shows its input line by line, as it came. Pauses of more
// than two seconds are shortened.
//
//	scripts/demo.sh | bin/recording > docs/images/demo.svg
package main

import (
	"bufio"
	_ "embed"
	"errors"
	"fmt"
	"html/template"
	"io"
	"os"
	"strings"
	"time"
)

const (
	// longestPause is what a viewer waits for a line; hold is how long the last picture stays.
	longestPause, hold = 2 * time.Second, 8 * time.Second
	// Pixels.
	lineHeight, charWidth, margin = 22, 8.5, 20
)

//go:embed recording.svg.tmpl
var svgText string

var svg = template.Must(template.New("recording").Parse(svgText))

// line is one line of the input, with its place, and the time since the beginning at which it
// appears.
type line struct {
	Text string
	At   time.Duration
	Y    int
	From float64 // in percent of a round; 0: it is always there
}

// Class: commands begin with $, comments with #, verdicts with ✓.
func (l line) Class() string {
	for begin, class := range map[string]string{"$": "command", "#": "comment", "✓": "verdict"} {
		if strings.HasPrefix(l.Text, begin) {
			return class
		}
	}
	return "output"
}

func main() {
	if err := draw(os.Stdout, record(os.Stdin, time.Now)); err != nil {
		fmt.Fprintln(os.Stderr, "recording:", err)
		os.Exit(1)
	}
}

// record reads lines until the input ends. The time begins with the first one, so that the first
// picture is not empty.
func record(input io.Reader, now func() time.Time) []line {
	var lines []line
	var at time.Duration
	var last time.Time
	for scanner := bufio.NewScanner(input); scanner.Scan(); {
		read := now()
		if len(lines) > 0 {
			at += min(read.Sub(last), longestPause)
		}
		last = read
		lines = append(lines, line{Text: strings.TrimRight(scanner.Text(), " "), At: at})
	}
	return lines
}

// draw writes the SVG.
func draw(out io.Writer, lines []line) error {
	if len(lines) == 0 {
		return errors.New("there was no input")
	}
	total, width := lines[len(lines)-1].At+hold, 0
	for i := range lines {
		l := &lines[i]
		l.Y, l.From = margin+lineHeight*i+16, 100*l.At.Seconds()/total.Seconds()
		width = max(width, int(2*margin+charWidth*float64(len([]rune(l.Text)))))
	}
	// After the seconds of one round the recording begins anew.
	return svg.Execute(out, map[string]any{"Lines": lines, "Seconds": total.Seconds(),
		"Width": width, "Height": 2*margin + lineHeight*len(lines)})
}
