package main

import (
	"bytes"
	"image"
	"image/color"
	"image/png"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	vegeta "github.com/tsenart/vegeta/v12/lib"

	"github.com/oncepay/oncepay/loadtest/audit"
)

// answered is a run in which class n got answers of about 2ⁿ ms, for ten seconds.
func answered(numbers ...int) (summary, chart) {
	cfg := config{Rate: 50, Duration: 10 * time.Second, run: "test"}
	o := newOutcome(pacer{rate: cfg.Rate, requests: uint64(cfg.requests())})
	for _, n := range numbers {
		for i := range 100 {
			took := time.Duration(1<<n)*time.Millisecond + time.Duration(i%10)*100*time.Microsecond
			result := &vegeta.Result{Code: http.StatusCreated, Latency: took}
			o.classes[n].add(time.Duration(i)*100*time.Millisecond, result, audit.Answer{Status: http.StatusCreated}, n == 4)
		}
	}
	return summarize(cfg, o), newChart(o.classes, cfg.Duration)
}

func written(t *testing.T, s summary, c chart) (html string, picture image.Image) {
	t.Helper()
	var text, pixels bytes.Buffer
	require.NoError(t, newPage(s, c).write(&text))
	require.NoError(t, drawPicture(&pixels, s, c))
	picture, err := png.Decode(&pixels)
	require.NoError(t, err)
	for what, unwanted := range map[string]string{"a tile without a value": "<b></b>", "a link to the outside": "http",
		"what the template did not trust": "ZgotmplZ"} {
		require.Equal(t, -1, strings.Index(text.String(), unwanted), what)
	}
	return text.String(), picture
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
	s, c := answered(0, 1, 2, 3, 4)
	html, picture := written(t, s, c)
	pixels := colours(picture)
	for _, class := range classes {
		require.Equal(t, 1, strings.Count(html, `aria-label="latency of `+string(class.Name)), class.Name)
		require.Equal(t, 1, strings.Count(html, `</i>`+string(class.Name)+"</td>"), class.Name)
		require.Contains(t, html, class.Light+";")
		require.Contains(t, html, class.Dark+";")
		require.Greater(t, pixels[rgb(class.Light)], 500, class.Name)
	}
}

// What was not measured has no tile, no panel and no row.
func TestReport_LeavesOutWhatIsNotThere(t *testing.T) {
	t.Parallel()
	s, c := answered(0)
	html, picture := written(t, s, c)
	pixels := colours(picture)
	for _, class := range classes[1:] {
		require.Equal(t, -1, strings.Index(html, "latency of "+string(class.Name)), class.Name)
		require.Zero(t, pixels[rgb(class.Light)], class.Name)
	}
	for _, label := range []string{"replays, p50", "effect of its event", "memory of a replica"} {
		require.Equal(t, -1, strings.Index(html, label), label)
	}
	s, c = answered()
	html, _ = written(t, s, c)
	require.Contains(t, html, "Failed: the rate was not kept")
}

func TestPromises_SayWhatWasChecked(t *testing.T) {
	t.Parallel()
	broken := func(s summary) (texts []string) {
		for _, p := range s.promises() {
			if p.Broken > 0 {
				texts = append(texts, p.Text)
			}
		}
		return texts
	}
	all := summary{Events: &audit.Events{}}
	require.Len(t, all.promises(), len(ofAnswers)+len(ofBooks)+1)
	require.Empty(t, broken(all))
	for _, p := range append(append([]promise{ofEvents}, ofAnswers...), ofBooks...) {
		for _, rule := range p.rules {
			all.Violations = []audit.Violation{{Rule: rule}}
			require.Equal(t, []string{p.text}, broken(all))
		}
	}
	all.Violations = []audit.Violation{{Rule: "a rule of tomorrow"}}
	require.Equal(t, []string{"a rule of tomorrow"}, broken(all))
	unread := summary{Unread: "no connection"}
	require.Len(t, unread.promises(), len(ofAnswers), "nothing is said of what was not read")
}

func TestChart_DrawsNoLineWhereNothingWasAnswered(t *testing.T) {
	t.Parallel()
	c, at := chart{step: time.Second}, func(n int) spot { return spot{at: time.Duration(n) * time.Second} }
	require.Equal(t, [][]spot{{at(1), at(2)}, {at(4)}}, c.pieces([]spot{at(1), at(2), at(4)}))
}
