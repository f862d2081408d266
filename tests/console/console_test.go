// Package console_test uses the console as a reader does: in a headless Chromium, against a stack
// of its own that it breaks and mends by the buttons.
package console_test

import (
	"context"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/internal/stack"
	"github.com/oncepay/oncepay/internal/stack/stacktest"
)

const (
	// patience bounds every wait; the longest is that for a demonstration, twenty seconds.
	patience = time.Minute
	// upTimeout bounds the start of the stack, which may have to be compiled.
	upTimeout = 4 * time.Minute
	// lease is short, because tests wait for its end.
	lease = 3 * time.Second
)

// bringUp starts a stack with a console, and returns the console's address.
func bringUp(t *testing.T) (url string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), upTimeout)
	defer cancel()
	return stacktest.Up(ctx, t, stack.Options{Dir: ".stack-console", Driver: stack.Native, Console: true,
		Env: []string{"IDEMPOTENCY_LEASE=" + lease.String()}, Out: io.Discard}).ConsoleURL()
}

// TestConsole runs its parts one after the other: each breaks the same stack, and mends it.
func TestConsole(t *testing.T) {
	t.Parallel()
	chromium := startBrowser(t)
	url := bringUp(t)
	for _, part := range []struct {
		name string
		run  func(*testing.T, *page)
	}{
		{"the picture shows a system that is well", showsThatAllIsWell},
		{"the shopper's buttons do what they say", shops},
		{"tokens that misbehave", misbehaves},
		{"the diagram shows which fence lost", losesItsFence},
		{"without Redis a payment is refused, and the retry after it succeeds", losesRedis},
		{"the key view marks what the tiers do not share", looksAtAKey},
		{"each demonstration ends with a verdict", demonstrates},
		{"each button of the switchboard takes effect", switches},
		{"each command can be copied", copies},
	} {
		t.Run(part.name, func(t *testing.T) {
			p := chromium.open(t, url, wide)
			p.untilSays("#summary", "all is well")
			defer p.mendIfFailed()
			part.run(t, p)
			p.requireQuiet(url)
		})
	}
	for name, as := range map[string]screen{"light": wide, "dark": wideDark, "narrow": narrow, "narrow and dark": narrowDark} {
		t.Run("it is accessible: "+name, func(t *testing.T) {
			p := chromium.open(t, url, as)
			p.untilSays("#summary", "all is well")
			p.requireAccessible()
			p.shoot("page-"+strings.ReplaceAll(name, " ", "-"), "#system")
			p.requireQuiet(url)
		})
	}
}

// mendIfFailed leaves the stack well, so that one failure is one failure.
func (p *page) mendIfFailed() {
	if p.t.Failed() {
		p.click(`form[action="/mend"] button`)
		p.untilSays("#summary", "all is well")
	}
}

// words is the text of the picture.
const words = `document.querySelector("#picture").getAttribute("aria-label")`

func showsThatAllIsWell(t *testing.T, p *page) {
	for _, name := range []string{"nginx", "api-1", "api-2", "Redis", "PostgreSQL", "provider"} {
		p.until(fmt.Sprintf(`%s.includes("%s is ready.")`, words, name))
	}
	p.until(`document.querySelectorAll("#picture svg.wide .node.ready").length == 8`)
	p.untilSays("#link", "live")
}

// newest is the first attempt in the list.
const newest = `document.querySelector("#attempts-you li")`

// pay presses a button of the shopper with a card, and waits until the page shows the attempt. Its
// key tells it from attempts of another page, which this one may still be loading.
func (p *page) pay(button, token string) {
	p.t.Helper()
	before := eval[string](p, newest+`?.id ?? ""`)
	eval[string](p, fmt.Sprintf(`document.querySelector("select[name=token]").value = %q`, token))
	eval[string](p, clearMessage)
	p.click(fmt.Sprintf(`.shopper button[value=%q]`, button))
	p.untilSays("#message", "Sent")
	p.until(fmt.Sprintf(`%s.id != %q && document.querySelector("#message").textContent.endsWith("key " + %[1]s.querySelector(".key code").textContent)`, newest, before))
}

// retryUntilPaid retries as a client does, for as long as an answer says that a retry may help:
// another attempt may still hold the key.
func (p *page) retryUntilPaid(button, token string) {
	p.t.Helper()
	for end := time.Now().Add(patience); time.Now().Before(end); {
		p.pay(button, token)
		p.until(attempts + `[0] != "waiting for an answer"`)
		outcome := eval[string](p, attempts+`[0]`)
		if !strings.Contains(outcome, ", retry after") {
			require.True(p.t, strings.HasPrefix(outcome, "201"), outcome)
			return
		}
	}
	p.t.Fatal("the payment stayed without an outcome")
}

// attempts are outcomes of the shopper's attempts, the newest first.
const attempts = `[...document.querySelectorAll("#attempts-you .outcome")].map(e => e.textContent)`

// untilAnswered waits until the newest attempt has an outcome.
func (p *page) untilAnswered(outcome string) {
	p.t.Helper()
	p.until(fmt.Sprintf(`%s[0] == %q`, attempts, outcome))
}

// diagram is what the newest attempt's sequence diagram says.
const diagram = `document.querySelector("#attempts-you li .sequence").getAttribute("aria-label")`

func shops(t *testing.T, p *page) {
	// An event is on the picture for some seconds, which a busy machine may let pass between two
	// looks.
	eval[bool](p, `new MutationObserver(() => window.eventsFlowed ||= `+words+`.includes("From PostgreSQL to stream: "))
		.observe(document.body, {subtree: true, childList: true, attributes: true}) || true`)
	p.pay("pay", "tok_visa")
	p.untilAnswered("201")
	for _, said := range []string{"client to nginx: pay with tok_visa", "to Redis: acquire", "to PostgreSQL: ", "to provider: charge", "to Redis: keep answer", "to client: 201"} {
		p.until(fmt.Sprintf(`%s.includes(%q)`, diagram, said))
	}
	p.pay("retry", "tok_visa")
	p.untilAnswered("201, replayed by Redis")
	p.pay("other-replica", "tok_visa")
	p.untilAnswered("201, replayed by Redis")
	p.until(diagram + `.startsWith("client to api-")`) // past nginx
	p.pay("other-card", "tok_visa")
	p.untilAnswered("422 idempotency_key_reused")
	p.pay("double", "tok_visa")
	p.until(`[...document.querySelectorAll("#attempts-you .what")].slice(0, 2).every(w => w.textContent == "double click")`)
	p.until(attempts + `.slice(0, 2).filter(o => o == "201").length == 1`) // the other one gets a replay, or is told to wait
	p.until(`!` + attempts + `.slice(0, 2).some(o => o.includes("waiting"))`)
	p.until("window.eventsFlowed")
	p.shoot("shopper", "#shopper")
}

func misbehaves(t *testing.T, p *page) {
	for token, outcome := range map[string]string{
		"tok_declined":           "402 payment_declined",
		"tok_insufficient_funds": "402 payment_declined",
		"tok_charged_no_answer":  "503 payment_outcome_unknown",
		"tok_charged_silent":     "503 payment_outcome_unknown",
		"tok_error_first":        "503 payment_outcome_unknown",
		"tok_mastercard":         "201",
	} {
		p.pay("pay", token)
		p.until(fmt.Sprintf(`%s[0].startsWith(%q)`, attempts, outcome))
		if strings.HasPrefix(outcome, "503") { // the retry finds out
			p.retryUntilPaid("retry", token)
		}
	}
}

// tier is what the key view says of one tier.
func tier(name string) string {
	return fmt.Sprintf(`document.querySelector('#tiers [aria-label=%q]').textContent`, name)
}

// untilTiersAgree waits until all four promises hold for the key in the view.
func (p *page) untilTiersAgree() {
	p.t.Helper()
	p.until(`document.querySelectorAll("#tiers .findings .agree").length == 4`)
}

// losesItsFence pauses a replica in the middle of a payment, until another one has taken it over.
func losesItsFence(t *testing.T, p *page) {
	p.pay("pay", "tok_slow_8s")
	const worker = `/From nginx to (api-.): 1 in flight/.exec(` + words + `)`
	p.until(worker)
	replica := eval[string](p, worker+`[1]`)
	// The payment has its lease and its charge: before that, the tiers know nothing, either.
	p.until(tier("Redis record") + `.includes("InProgress")`)
	p.until(tier("Charges") + `.includes("succeeded")`)
	p.command("pause " + replica)
	p.until(fmt.Sprintf(`%s.includes("%s is paused")`, words, replica))
	p.shoot("paused", "#system")
	p.until(tier("Redis record") + `.includes("knows nothing")`) // the lease has ended
	p.retryUntilPaid("other-replica", "tok_slow_8s")
	p.command("resume " + replica)
	p.untilSays("#attempts-you .fence", replica+" lost")
	p.until(`!` + attempts + `.some(o => o.includes("waiting"))`)
	p.shoot("fence", "#attempts-you li:has(.fence)")
	p.untilSays("#summary", "all is well")
	p.untilTiersAgree()
}

const clearMessage = `document.querySelector("#message").textContent = ""`

// command presses a button of the switchboard, and waits until it has taken effect.
func (p *page) command(command string) {
	p.t.Helper()
	eval[string](p, clearMessage)
	p.click(fmt.Sprintf(`button[value=%q]`, command))
	p.untilSays("#message", command+": done")
}

func losesRedis(_ *testing.T, p *page) {
	p.command("stop redis") // payments fail closed
	p.untilSays("#summary", "Redis stopped")
	p.pay("pay", "tok_visa")
	p.until(attempts + `[0].startsWith("503 ")`)
	p.shoot("broken", "#system")
	p.command("start redis")
	p.retryUntilPaid("retry", "tok_visa")
}

func looksAtAKey(t *testing.T, p *page) {
	const shown = `document.querySelector("#tiers-key code").textContent`
	p.pay("pay", "tok_visa")
	p.untilAnswered("201")
	p.untilTiersAgree()
	p.shoot("key", "#key")
	key := eval[string](p, shown)
	p.command("flush redis")
	const pending = `[...document.querySelectorAll("#tiers .findings .pending")]`
	p.until(fmt.Sprintf(`%s.length == 1 && %[1]s[0].innerText.includes("Redis does not know the key")`, pending))
	p.pay("retry", "tok_visa")
	p.untilAnswered("201, replayed by PostgreSQL")
	p.untilTiersAgree()

	p.pay("pay", "tok_mastercard") // the view follows the newest payment
	p.until(fmt.Sprintf(`%s != %q`, shown, key))
	p.do(chromedp.SendKeys("input[name=key]", key), "type the key")
	p.click(".key-form button")
	p.until(fmt.Sprintf(`%s == %q`, shown, key))
	p.untilTiersAgree()
}

func demonstrates(t *testing.T, p *page) {
	for _, name := range eval[[]string](p, `[...document.querySelectorAll("button[name=demo]")].map(b => b.value)`) {
		title := eval[string](p, fmt.Sprintf(`document.querySelector("#demo-%s").textContent`, name))
		p.click(fmt.Sprintf(`button[name=demo][value=%q]`, name))
		p.untilSays("#story h3", title)
		p.until(`document.querySelector("#story .verdict")`)
		story := eval[string](p, `document.querySelector("#story").innerText`)
		require.Contains(t, story, "The promise held. The books agree", "%s", story)
		require.Zero(t, eval[int](p, `document.querySelectorAll("#story td .bad").length`), story)
		p.until(`document.querySelectorAll("#attempts-demonstration li").length > 0`)
		p.shoot("demo-"+name, "#story")
	}
	p.untilSays("#summary", "all is well")
	p.shoot("demonstrations", ".cards")
}

// switches presses every button of the switchboard, and looks at what became of the service or the
// connection.
func switches(t *testing.T, p *page) {
	after := map[string]string{"kill": "stopped", "stop": "stopped", "crash": "stopped", "pause": "paused", "resume": "ready", "start": "ready", "flush": "ready"}
	undo := map[string]string{"stopped": "start", "paused": "resume"}
	pressed := map[string]bool{}
	press := func(command string) {
		p.command(command)
		pressed[command] = true
		verb, service, _ := strings.Cut(command, " ")
		if state := after[verb]; state != "" {
			p.untilSays("#state-"+service, state)
		}
	}
	all := eval[[]string](p, `[...document.querySelectorAll("button[name=command]")].map(b => b.value)`)
	for _, command := range all {
		verb, service, _ := strings.Cut(command, " ")
		switch {
		case strings.Contains(service, " "):
			press(command)
			from, to, _ := strings.Cut(strings.TrimSuffix(service, " 300ms"), " ")
			fault := fmt.Sprintf(`/Fault from %s to %s: [^.]*%s/`, title(from), title(to), strings.TrimPrefix(verb, "heal"))
			p.until(fmt.Sprintf(`%s.test(%s) == %t`, fault, words, verb != "heal"))
		case verb != "start" && verb != "resume":
			press(command)
			if end := undo[after[verb]]; end != "" {
				press(end + " " + service)
			}
		}
	}
	for _, command := range all {
		require.True(t, pressed[command], "%s was not pressed", command)
	}
	p.untilSays("#summary", "all is well")
	p.command("start nginx") // it runs already, which is no error
	p.shoot("switchboard", "#switchboard")
	p.command("pause api-2")
	p.command("partition api-1 redis")
	p.click(`form[action="/mend"] button`)
	p.untilSays("#message", "Done: heal api-1 redis, resume api-2")
	p.untilSays("#summary", "all is well")
}

func title(service string) string {
	if t, ok := map[string]string{"redis": "Redis", "postgres": "PostgreSQL", "pspsim": "provider"}[service]; ok {
		return t
	}
	return service
}

func copies(t *testing.T, p *page) {
	eval[bool](p, `(window.copied = [], navigator.clipboard.writeText = async text => { copied.push(text) }, true)`)
	commands := eval[[]string](p, `[...document.querySelectorAll("button[name=command]")].map(b => "stack " + b.value)`)
	eval[bool](p, `(document.querySelectorAll(".board [data-copy]").forEach(b => b.click()), true)`)
	p.until(fmt.Sprintf(`copied.length == %d`, len(commands)))
	require.Equal(t, commands, eval[[]string](p, `copied`))
	p.untilSays("#message", "Copied: "+commands[len(commands)-1])
}
