package pages_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestReadme_BadgesSayWhatIsTrue(t *testing.T) {
	t.Parallel()
	repository := read(t)
	for badge, source := range map[string]struct {
		where  string
		value  *regexp.Regexp
		before string
	}{
		"docs/images/badge-go.svg":      {"go.mod", regexp.MustCompile(`(?m)^go (\d+\.\d+)`), "Go "},
		"docs/images/badge-licence.svg": {"LICENSE", regexp.MustCompile(`^(\w+) License\n`), "Licence: "},
	} {
		value := source.value.FindStringSubmatch(repository.files[source.where])
		require.NotNil(t, value, source.where)
		require.Contains(t, repository.files[badge], `aria-label="`+source.before+value[1]+`"`)
		require.Contains(t, repository.files[badge], ">"+value[1]+"</text>")
		require.Contains(t, repository.files["README.md"], "[!["+source.before+value[1]+"]("+badge+")]")
	}
}

// figure is a number, with what stands inside it: 5.5, 1,783, 2026-11-21.
var figure = regexp.MustCompile(`\d(?:[\d.,:-]*\d)?`)

// TestTranslations_AreInStep compares what no language changes: blocks of code on the page, and
// code, links and figures in each section. A sentence may have them in another order.
func TestTranslations_AreInStep(t *testing.T) {
	t.Parallel()
	pages := read(t).pages
	for _, page := range []string{"README", "docs/status-codes", "docs/stack"} {
		requireInStep(t, pages[page+".md"], pages[page+".zh-TW.md"])
	}
}

func requireInStep(t *testing.T, original, translation string) {
	t.Helper()
	require.NotEmpty(t, original)
	require.Equal(t, fence.FindAllString(original, -1), fence.FindAllString(translation, -1))
	sections, translated := sectionsOf(original), sectionsOf(translation)
	require.Len(t, translated, len(sections))
	for i, section := range sections {
		title, _, _ := strings.Cut(translated[i], "\n")
		require.Equal(t, level.FindString(section), level.FindString(title), title)
		for _, pattern := range []*regexp.Regexp{span, link, figure} {
			require.ElementsMatch(t, pattern.FindAllString(section, -1), pattern.FindAllString(translated[i], -1), title)
		}
	}
}

var (
	level = regexp.MustCompile(`(?m)^#+ `)
	// own is a link to the page itself, or to a page that is translated, too: both differ.
	own = regexp.MustCompile(`\]\((?:#|(?:\.\./|docs/)*(?:README|status-codes|stack)\.)[^)]*\)`)
)

// sectionsOf returns the prose of a page, from each heading to the next.
func sectionsOf(page string) (sections []string) {
	text := own.ReplaceAllString(prose(page), "](own)")
	starts := level.FindAllStringIndex(text, -1)
	for i, start := range starts {
		end := len(text)
		if i+1 < len(starts) {
			end = starts[i+1][0]
		}
		sections = append(sections, text[start[0]:end])
	}
	return sections
}
