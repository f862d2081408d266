package main

import (
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// clock returns the times that a test sets, one after the other.
func clock(seconds ...float64) func() time.Time {
	return func() time.Time {
		next := time.Unix(0, int64(seconds[0]*float64(time.Second)))
		seconds = seconds[1:]
		return next
	}
}

func TestRecord_ShortensLongPauses(t *testing.T) {
	t.Parallel()
	lines := record(strings.NewReader("$ pay\n< 201\n✓\n"), clock(7, 8, 30))
	require.Equal(t, []line{{Text: "$ pay"}, {Text: "< 201", At: time.Second}, {Text: "✓", At: 3 * time.Second}}, lines)
}

func TestDraw_IsWellFormedXML(t *testing.T) {
	t.Parallel()
	var svg strings.Builder
	require.NoError(t, draw(&svg, []line{{Text: `$ curl -d '{"a":1}' "<&>"`}, {Text: "✓ one charge", At: time.Second}}))
	require.Contains(t, svg.String(), `class="command"`)
	require.Contains(t, svg.String(), `class="verdict"`)
	require.NotContains(t, svg.String(), "#l0", "the first line does not wait")
	require.Contains(t, svg.String(), "#l1 { animation")
	decoder := xml.NewDecoder(strings.NewReader(svg.String()))
	for {
		_, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			return
		}
		require.NoError(t, err)
	}
}

func TestDraw_NeedsALine(t *testing.T) {
	t.Parallel()
	require.ErrorContains(t, draw(io.Discard, nil), "no input")
}
