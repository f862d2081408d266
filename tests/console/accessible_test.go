package console_test

import (
	_ "embed"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"
)

// checks finds what WCAG 2.2 does not allow; see accessible.js.
//
//go:embed accessible.js
var checks string

// requireAccessible checks names, contrast, headings and width, and walks through the page by the
// keyboard.
func (p *page) requireAccessible() {
	p.t.Helper()
	require.Empty(p.t, eval[[]string](p, checks))
	reachable := eval[int](p, `[...document.querySelectorAll("a[href], button, input, select, summary, [tabindex='0']")].filter(e => e.checkVisibility()).length`)
	eval[bool](p, `(window.visited = new Set(), document.addEventListener("focusin", e => visited.add(e.target)), document.activeElement.blur(), true)`)
	for range reachable + 5 { // sections that change meanwhile may take a step more
		p.do(chromedp.KeyEvent("\t"), "the key Tab")
	}
	require.GreaterOrEqual(p.t, eval[int](p, `visited.size`), reachable, "every control can be reached by the keyboard")
}
