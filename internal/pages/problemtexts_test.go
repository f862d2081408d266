package pages

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/api"
)

// sources are where codes of problems are written.
var sources = []string{"../checkout/*.go", "../postgres/*.go", "../httpapi/*.go", "../../idempotency/errors.go", "../../deploy/nginx/*.conf"}

// codeText finds codes in the sources: code: "x", Code = "x", conflict("x", …) and "code":"x".
var codeText = regexp.MustCompile(`(?:\b[cC]ode(?:[A-Z]\w*)?"?(?::| +=) *|\b(?:conflict|unprocessable|invalid)\()"([a-z_]{5,})"`)

func TestProblems_ExplainEveryCode(t *testing.T) {
	t.Parallel()
	codes := map[string]bool{}
	for _, pattern := range sources {
		files, err := filepath.Glob(pattern)
		require.NoError(t, err)
		for _, file := range files {
			if ok, _ := filepath.Match("*_test.go", filepath.Base(file)); ok {
				continue
			}
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			for _, found := range codeText.FindAllSubmatch(text, -1) {
				codes[string(found[1])] = true
			}
		}
	}
	require.Greater(t, len(codes), 40, "the pattern finds them")
	delete(codes, "order_")                    // the status follows
	delete(codes, "idempotency_scope_missing") // an account has an ID
	for code := range codes {
		require.Contains(t, byCode, code)
	}
}

func TestProblems_AreThoseOfTheDescription(t *testing.T) {
	t.Parallel()
	spec, err := api.GetSpec()
	require.NoError(t, err)
	var described []string
	for _, code := range spec.Components.Schemas["Problem"].Value.Properties["code"].Value.Extensions["x-extensible-enum"].([]any) {
		described = append(described, code.(string))
	}
	require.ElementsMatch(t, slices.Collect(maps.Keys(byCode)), described)
}

func TestProblems_AreListedOnce(t *testing.T) {
	t.Parallel()
	listed := 0
	for _, g := range groups {
		listed += len(g.Problems)
	}
	require.Len(t, byCode, listed)
}

// statusRow finds a status and the codes beside it in the first column of the page's table.
var statusRow = regexp.MustCompile("(\\d{3})((?:,? `[a-z_]+`)+)")

// TestProblems_AreSummarizedOnThePage: codes and statuses have one source.
func TestProblems_AreSummarizedOnThePage(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/status-codes.md")
	require.NoError(t, err)
	compared := 0
	for line := range strings.Lines(string(page)) {
		cells := strings.Split(line, "|")
		if len(cells) < 3 {
			continue
		}
		for _, match := range statusRow.FindAllStringSubmatch(cells[1], -1) {
			for _, code := range regexp.MustCompile("[a-z_]+").FindAllString(match[2], -1) {
				require.Equal(t, match[1], strconv.Itoa(byCode[code].Status), code)
				compared++
			}
		}
	}
	require.GreaterOrEqual(t, compared, 8)
}
