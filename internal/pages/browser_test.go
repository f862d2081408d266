package pages

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/go-chi/chi/v5"
	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/api"
)

// browserTimeout bounds a test in a browser, its start included. A busy machine takes long.
const browserTimeout = 2 * time.Minute

// browser starts the one headless Chromium of all tests.
var browser = sync.OnceValues(func() (context.Context, error) {
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.NoSandbox) // CI runs as root
	ctx, _ := chromedp.NewExecAllocator(context.Background(), options...)          // TestMain closes it
	ctx, closeBrowser = chromedp.NewContext(ctx)
	return ctx, chromedp.Do(ctx)
})

// closeBrowser does nothing until the browser runs.
var closeBrowser context.CancelFunc = func() {}

func TestMain(m *testing.M) {
	code := m.Run()
	closeBrowser()
	os.Exit(code)
}

// tab is a page in a headless Chromium, and what the browser had to say about it.
type tab struct {
	ctx context.Context

	mu        sync.Mutex
	complaint []string // errors of the console, and whatever failed to load
	requests  []string
}

func openTab(t *testing.T) *tab {
	t.Helper()
	running, err := browser()
	require.NoError(t, err)
	ctx, closeTab := chromedp.NewContext(running)
	ctx, cancel := context.WithTimeout(ctx, browserTimeout)
	t.Cleanup(func() {
		cancel()
		closeTab()
	})
	b := &tab{ctx: ctx}
	require.NoError(t, chromedp.Listen(ctx, b.listen))
	return b
}

func (b *tab) listen(event any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch event := event.(type) {
	case *log.EventEntryAdded:
		b.complaint = append(b.complaint, event.Entry.Text+" "+event.Entry.URL)
	case *runtime.EventConsoleAPICalled:
		if event.Type == runtime.ConsoleAPICalledTypeError || event.Type == runtime.ConsoleAPICalledTypeWarning {
			b.complaint = append(b.complaint, fmt.Sprint(event.Args))
		}
	case *runtime.EventExceptionThrown:
		b.complaint = append(b.complaint, fmt.Sprint(event.ExceptionDetails))
	case *network.EventRequestWillBeSent:
		b.requests = append(b.requests, event.Request.URL)
	}
}

// requireQuiet says that the page asked only its own server, and that the browser found no fault.
func (b *tab) requireQuiet(t *testing.T, server string) {
	t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	require.Empty(t, b.complaint)
	require.NotEmpty(t, b.requests)
	for _, url := range b.requests {
		require.True(t, strings.HasPrefix(url, server) || strings.HasPrefix(url, "data:"), url)
	}
}

// evaluate returns what an expression is in the page.
func evaluate[T any](t *testing.T, b *tab, expression string) T {
	t.Helper()
	value, err := chromedp.Run(b.ctx, chromedp.Evaluate[T](expression))
	require.NoError(t, err)
	return value
}

// site serves the pages, and beside them an API that only takes note of its requests.
func site(t *testing.T, demoKey string) (*httptest.Server, <-chan *http.Request) {
	t.Helper()
	router, called := chi.NewRouter(), make(chan *http.Request, 10)
	Mount(router, Options{DemoKey: demoKey, NotFound: http.NotFound})
	router.Handle("/v1/*", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		called <- r
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"id":"answered"}`))
	}))
	server := httptest.NewServer(router)
	t.Cleanup(server.Close)
	return server, called
}

func TestDocs_ShowEveryOperationInABrowser(t *testing.T) {
	t.Parallel()
	server, _ := site(t, "")
	b := openTab(t)
	require.NoError(t, chromedp.Do(b.ctx, chromedp.Navigate(server.URL+"/"), chromedp.WaitVisible(".opblock-tag-section")))
	summaries := evaluate[[]string](t, b, `[...document.querySelectorAll('.opblock-summary-description')].map(e => e.textContent)`)
	spec, err := api.GetSpec()
	require.NoError(t, err)
	var described []string
	for _, item := range spec.Paths.Map() {
		for _, operation := range item.Operations() {
			described = append(described, operation.Summary)
		}
	}
	require.ElementsMatch(t, described, summaries)
	b.requireQuiet(t, server.URL)
}

func TestDocs_SendNothingWithoutADemoKey(t *testing.T) {
	t.Parallel()
	server, _ := site(t, "")
	b := openTab(t)
	require.NoError(t, chromedp.Do(b.ctx, chromedp.Navigate(server.URL+"/docs#/catalogue/listProducts"), chromedp.WaitVisible(".opblock-body")))
	require.Zero(t, evaluate[int](t, b, `document.querySelectorAll('.try-out__btn, .execute').length`))
}

func TestDocs_TryARequestWithTheDemoKey(t *testing.T) {
	t.Parallel()
	server, called := site(t, "sk_test_demo")
	b := openTab(t)
	require.NoError(t, chromedp.Do(b.ctx, chromedp.Navigate(server.URL+"/docs#/customers/createCustomer"), chromedp.WaitVisible(".opblock-body .execute")))
	key := evaluate[string](t, b, `document.querySelector('tr[data-param-name="Idempotency-Key"] input').value`)
	// The page may still be scrolling to the operation, so a click by the mouse could miss.
	evaluate[any](t, b, `document.querySelector('.opblock-body .execute').click()`)
	require.NoError(t, chromedp.Do(b.ctx, chromedp.WaitVisible(".live-responses-table")))
	require.Len(t, key, len("8e03978e-40d5-43e8-bc93-6894a57f9324"), "a new key for each operation")
	select {
	case request := <-called:
		require.Equal(t, "Bearer sk_test_demo", request.Header.Get("Authorization"))
		require.Equal(t, key, request.Header.Get("Idempotency-Key"))
		require.Equal(t, "/v1/customers", request.URL.Path)
	case <-b.ctx.Done():
		t.Fatal("the API was not called")
	}
	b.requireQuiet(t, server.URL)
}

func TestProblems_AreQuietInABrowser(t *testing.T) {
	t.Parallel()
	server, _ := site(t, "")
	b := openTab(t)
	require.NoError(t, chromedp.Do(b.ctx,
		chromedp.Navigate(server.URL+"/problems"),
		chromedp.WaitVisible("h1"),
		chromedp.Click(`a[href="/problems/out_of_stock"]`),
		chromedp.WaitVisible("pre"),
	))
	b.requireQuiet(t, server.URL)
}
