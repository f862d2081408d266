package pages_test

import (
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
)

// Headings of the console's sections, and of their descriptions.
var (
	consoleHeading = regexp.MustCompile(`(?m)^  <h[12] id="[a-z-]+">(.*)</h[12]>$`)
	pageHeading    = regexp.MustCompile(`(?m)^## (.*)$`)
)

func TestConsole_IsDescribedUnderItsHeadings(t *testing.T) {
	t.Parallel()
	repository := read(t)
	headings := func(pattern *regexp.Regexp, text string) (all []string) {
		for _, found := range pattern.FindAllStringSubmatch(text, -1) {
			all = append(all, found[1])
		}
		return all
	}
	shown := headings(consoleHeading, repository.files["internal/console/page/main.html"])
	require.NotEmpty(t, shown)
	require.Equal(t, shown, headings(pageHeading, repository.pages["docs/console/README.md"]))
}
