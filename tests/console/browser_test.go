package console_test

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	cdppage "github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"
)

// pictures is the folder in which the tests leave pictures of what they see.
var pictures = flag.String("pictures", "", "the folder for the pictures; none: no pictures are made")

const (
	// startTimeout bounds the start of Chromium, which takes a second, and ten on a loaded machine.
	startTimeout = 60 * time.Second
	pollInterval = 50 * time.Millisecond
)

// browser is a Chromium process.
type browser struct{ ctx context.Context }

// startBrowser starts Chromium, and ends it with the test. Without Chromium the test fails: a
// skipped test proves nothing.
func startBrowser(t *testing.T) browser {
	t.Helper()
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.WSURLReadTimeout(startTimeout))
	if os.Getuid() == 0 {
		options = append(options, chromedp.NoSandbox) // its sandbox refuses root
	}
	allocator, cancel := chromedp.NewExecAllocator(context.Background(), options...)
	t.Cleanup(cancel)
	ctx, cancel := chromedp.NewContext(allocator)
	t.Cleanup(cancel)
	require.NoError(t, chromedp.Do(ctx), "this test needs Chromium: install it first")
	return browser{ctx}
}

// screen is how a page is shown.
type screen struct {
	width, height int64
	dark          bool
}

var (
	wide       = screen{1280, 900, false}
	wideDark   = screen{1280, 900, true}
	narrow     = screen{400, 800, false}
	narrowDark = screen{400, 800, true}
)

// page is a tab, with everything that it complained about and asked for.
type page struct {
	ctx context.Context
	t   *testing.T

	mu         sync.Mutex
	complaints []string
	requests   []string
}

// open shows a URL in a new tab.
func (b browser) open(t *testing.T, url string, as screen) *page {
	t.Helper()
	ctx, cancel := chromedp.NewContext(b.ctx, chromedp.WithNewBrowserContext())
	t.Cleanup(cancel)
	p := &page{ctx: ctx, t: t}
	scheme := map[bool]string{false: "light", true: "dark"}[as.dark]
	require.NoError(t, chromedp.Listen(ctx, p.note))
	_, err := chromedp.Call(ctx, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{
		Width: as.width, Height: as.height, DeviceScaleFactor: 1})
	require.NoError(t, err)
	// Without the moving arrows: drawing them takes a processor, and no test looks at them.
	_, err = chromedp.Call(ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{
		{Name: "prefers-color-scheme", Value: scheme}, {Name: "prefers-reduced-motion", Value: "reduce"}}})
	require.NoError(t, err)
	p.do(chromedp.Navigate(url), "open "+url)
	return p
}

// note collects what the page complains about, and where it goes.
func (p *page) note(event any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch e := event.(type) {
	case *runtime.EventExceptionThrown:
		p.complaints = append(p.complaints, fmt.Sprint(e.ExceptionDetails))
	case *runtime.EventConsoleAPICalled:
		if e.Type == runtime.ConsoleAPICalledTypeError || e.Type == runtime.ConsoleAPICalledTypeWarning {
			p.complaints = append(p.complaints, fmt.Sprint(e.Args))
		}
	case *log.EventEntryAdded:
		if e.Entry.Level == log.EntryLevelError || e.Entry.Level == log.EntryLevelWarning {
			p.complaints = append(p.complaints, e.Entry.Text+" "+e.Entry.URL)
		}
	case *network.EventRequestWillBeSent:
		p.requests = append(p.requests, e.Request.URL)
	}
}

// requireQuiet says that the page complained about nothing, and asked only its own server.
func (p *page) requireQuiet(own string) {
	p.t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	require.Empty(p.t, p.complaints)
	for _, url := range p.requests {
		require.True(p.t, strings.HasPrefix(url, own+"/"), url)
	}
}

// eval returns the value of a JavaScript expression, which is awaited if it is a promise.
func eval[T any](p *page, expression string) T {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	value, err := chromedp.Run(ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	require.NoError(p.t, err, expression)
	return value
}

// gist is what helps to understand why a wait was in vain.
const gist = `["#message", "#summary", "#attempts-you", "#story", "#tiers"]
	.map(s => s + ": " + (document.querySelector(s)?.innerText ?? "").replaceAll(/\s+/g, " ").slice(0, 700)).join("\n")`

// until waits until a JavaScript expression is true; until then it may also throw.
func (p *page) until(expression string) {
	p.t.Helper()
	predicate := "(() => { try { return !!(" + expression + ") } catch { return false } })()"
	_, err := chromedp.Run(p.ctx, chromedp.Poll[chromedp.Void](predicate, chromedp.WithPollingInterval(pollInterval),
		chromedp.WithPollingTimeout(patience)))
	if err != nil {
		require.NoError(p.t, err, "%s\nthe page says:\n%s", expression, eval[string](p, gist))
	}
}

// untilSays waits until the text of an element contains something.
func (p *page) untilSays(selector, text string) {
	p.t.Helper()
	p.until(fmt.Sprintf("document.querySelector(%q).innerText.includes(%q)", selector, text))
}

// click presses the first element of a CSS selector, if nothing lies over it. It looks and presses
// in one step, because the page moves when a section above changes.
func (p *page) click(selector string) {
	p.t.Helper()
	require.True(p.t, eval[bool](p, fmt.Sprintf(`(e => {
		e.scrollIntoView({block: "center", behavior: "instant"});
		const r = e.getBoundingClientRect();
		const free = e.contains(document.elementFromPoint(r.x + r.width / 2, r.y + r.height / 2));
		if (free) e.click();
		return free;
	})(document.querySelector(%q))`, selector)), "something lies over %s", selector)
}

// do runs an action, but not for ever.
func (p *page) do(action chromedp.Action[chromedp.Void], what string) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	require.NoError(p.t, chromedp.Do(ctx, action), what)
}

// shoot saves an element of the page as NAME.png, if the tests are to leave pictures. The tests say
// what a page contains; pictures are for people who read about it.
func (p *page) shoot(name, selector string) {
	p.t.Helper()
	if *pictures == "" {
		return
	}
	eval[bool](p, `(document.querySelector("header").style.position = "static", document.querySelector("#message").textContent = "", true)`)
	clip := eval[cdppage.Viewport](p, fmt.Sprintf(`(r => ({x: r.x + scrollX, y: r.y + scrollY, width: r.width, height: r.height, scale: 1}))
		(document.querySelector(%q).getBoundingClientRect())`, selector))
	shot, err := chromedp.Call(p.ctx, cdppage.CaptureScreenshot, cdppage.CaptureScreenshotParams{Clip: &clip, CaptureBeyondViewport: new(true)})
	require.NoError(p.t, err)
	picture, err := png.Decode(bytes.NewReader(shot.Data))
	require.NoError(p.t, err)
	var small bytes.Buffer
	require.NoError(p.t, (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&small, fewerColours(picture)))
	require.NoError(p.t, os.MkdirAll(*pictures, 0o755))
	require.NoError(p.t, os.WriteFile(filepath.Join(*pictures, name+".png"), small.Bytes(), 0o644))
}

// fewerColours keeps the 256 most frequent colours, which makes the file of a page of text a third
// as large.
func fewerColours(picture image.Image) image.Image {
	count := map[color.Color]int{}
	for y := range picture.Bounds().Dy() {
		for x := range picture.Bounds().Dx() {
			count[picture.At(x, y)]++
		}
	}
	frequent := slices.SortedFunc(maps.Keys(count), func(a, b color.Color) int { return count[b] - count[a] })
	paletted := image.NewPaletted(picture.Bounds(), color.Palette(frequent[:min(len(frequent), 256)]))
	draw.Draw(paletted, picture.Bounds(), picture, image.Point{}, draw.Src)
	return paletted
}
