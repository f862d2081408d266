package oncecheck

import (
	"embed"
	"fmt"
	"slices"
	"strings"
)

// Rule is something that every API with idempotency keys should do.
type Rule struct {
	Name  string
	check func(*probe) // it ends early if the rule does not hold
}

// Rules are all rules, in the order in which they are checked. Each has a page in pages.
var Rules = []Rule{
	{"replay", replay},
	{"one-effect", counted(oneEffect)},
	{"two-at-once", counted(sentAtOnce(2))},
	{"ten-at-once", counted(sentAtOnce(10))},
	{"fifty-at-once", counted(sentAtOnce(50))},
	{"polite-retry", politeRetry},
	{"retry-after", retryAfter},
	{"other-body", otherBody},
	{"other-path", otherPath},
	{"other-caller", otherCaller},
	{"member-order", memberOrder},
	{"no-key", noKey},
	{"empty-key", emptyKey},
	{"long-key", longKey},
	{"quoted-key", quotedKey},
	{"strange-keys", strangeKeys},
	{"similar-keys", similarKeys},
	{"lost-answer", lostAnswer},
	{"slow-client", counted(slowClient)},
	{"client-leaves", counted(clientLeaves)},
	{"error-then-key", errorThenKey},
	{"survives", counted(survives)},
	{"retention", retention},
}

//go:embed pages/*.md
var pages embed.FS

// Page is the rule's page, in Markdown. Its first line is the claim.
func (r Rule) Page() string {
	text, _ := pages.ReadFile("pages/" + r.Name + ".md") // a test looks for all of them
	return string(text)
}

// Claim is the rule in one sentence.
func (r Rule) Claim() string {
	line, _, _ := strings.Cut(r.Page(), "\n")
	return strings.TrimPrefix(line, "# ")
}

// known returns an error unless all names are those of rules.
func known(names []string) error {
	for _, name := range names {
		if !slices.ContainsFunc(Rules, func(r Rule) bool { return r.Name == name }) {
			return fmt.Errorf("there is no rule %q; --rules lists them", name)
		}
	}
	return nil
}

// counted is a rule whose requests have one effect together.
func counted(check func(*probe)) func(*probe) {
	return func(p *probe) { p.counted(func() { check(p) }) }
}
