package main

import (
	"bytes"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/loadtest/books"
)

// answered is a run in which class n got answers of about 2ⁿ ms, for ten seconds.
func answered(t *testing.T, numbers ...int) (html string, picture image.Image) {
	t.Helper()
	cfg := config{Rate: 50, Duration: 10 * time.Second}
	o := newOutcome(cfg, "test")
	for _, n := range numbers {
		for i := range 100 {
			took := time.Duration(1<<n)*time.Millisecond + time.Duration(i%10)*100*time.Microsecond
			answer := spot{time.Duration(i) * 100 * time.Millisecond, took}
			o.Classes[n].add(answer, n)
			o.all().add(answer, n)
		}
	}
	o.close()
	pixels, step, err := o.draw()
	require.NoError(t, err)
	picture, err = png.Decode(bytes.NewReader(pixels))
	require.NoError(t, err)
	page, err := o.page(pixels, step)
	require.NoError(t, err)
	parts := regexp.MustCompile(`^(?s)(.*<img src=")data:image/png;base64,[^"]+(".*)$`).FindStringSubmatch(string(page))
	require.Len(t, parts, 3, "the page has the picture in it")
	html = parts[1] + parts[2]
	for what, unwanted := range map[string]string{"a tile without a value": "<b></b>", "a link to the outside": "http",
		"what the template did not trust": "ZgotmplZ"} {
		require.Equal(t, -1, strings.Index(html, unwanted), what)
	}
	return html, picture
}

// colours counts the pixels of each: those of lines, as dots let the paper through.
func colours(picture image.Image) map[color.Color]int {
	n := map[color.Color]int{}
	for y := range picture.Bounds().Dy() {
		for x := range picture.Bounds().Dx() {
			n[color.NRGBAModel.Convert(picture.At(x, y))]++
		}
	}
	return n
}

func TestReport_ShowsEachClass(t *testing.T) {
	t.Parallel()
	html, picture := answered(t, 0, 1, 2, 3, 4)
	pixels := colours(picture)
	for _, class := range classes {
		require.Equal(t, 1, strings.Count(html, `</i>`+string(class.Kind)+"<"), class.Kind)
		require.Contains(t, html, fmt.Sprintf("background: #%02x%02x%02x", class.Colour.R, class.Colour.G, class.Colour.B))
		require.Greater(t, pixels[class.Colour], 500, class.Kind)
	}
}

// What was not measured has no tile, no panel and no row.
func TestReport_LeavesOutWhatIsNotThere(t *testing.T) {
	t.Parallel()
	html, picture := answered(t, 0)
	pixels := colours(picture)
	for _, class := range classes[1:] {
		require.Equal(t, -1, strings.Index(html, `</i>`+string(class.Kind)), class.Kind)
		require.Zero(t, pixels[class.Colour], class.Kind)
	}
	for _, label := range []string{"replays, p50", "effect of its event", "memory of a replica"} {
		require.Equal(t, -1, strings.Index(html, label), label)
	}
	html, _ = answered(t)
	require.Contains(t, html, "Failed: the rate was not kept")
}

func TestPromises_SayWhatWasChecked(t *testing.T) {
	t.Parallel()
	broken := func(s *outcome) (texts []string) {
		for _, p := range s.promises() {
			if p.Broken > 0 {
				texts = append(texts, p.Text)
			}
		}
		return texts
	}
	all := &outcome{Events: &published{}}
	require.Len(t, all.promises(), len(ofAnswers)+len(ofBooks)+1)
	require.Empty(t, broken(all))
	for _, rule := range append([]books.Rule{inTime, "a rule of tomorrow"}, append(ofAnswers, ofBooks...)...) {
		all.Violations = []books.Violation{{Rule: rule}}
		require.Equal(t, []string{string(rule)}, broken(all))
	}
	unread := &outcome{Unread: "no connection"}
	require.Len(t, unread.promises(), len(ofAnswers), "nothing is said of what was not read")
}

func TestPercentiles_DrawNoLineWhereNothingWasAnswered(t *testing.T) {
	t.Parallel()
	at := func(n int) spot {
		return spot{at: time.Duration(n)*time.Second + time.Second/2, took: time.Millisecond}
	}
	r := row{answers: []spot{at(4), at(1), at(2), at(2)}}
	require.Equal(t, [][]spot{{at(1), at(2)}, {at(4)}}, r.percentiles(time.Second, 99))
}
