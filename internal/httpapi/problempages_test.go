package httpapi

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
)

// sources are where codes of problems are written.
var sources = []string{"../checkout/*.go", "../postgres/*.go", "*.go", "../../idempotency/errors.go", "../../deploy/nginx/*.conf"}

// codeText finds codes in the sources: code: "x", Code = "x", conflict("x", …) and "code":"x".
var codeText = regexp.MustCompile(`(?:\b[cC]ode(?:[A-Z]\w*)?"?(?::| +=) *|\b(?:conflict|unprocessable|invalid)\()"([a-z_]{5,})"`)

func TestProblemPages_ExplainEveryCode(t *testing.T) {
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
	delete(codes, "order_") // the status follows
	for code := range codes {
		require.Contains(t, explanations, code)
	}
}
