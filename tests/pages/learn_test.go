package pages_test

import (
	"path"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// runIt is the block of commands of a chapter.
var runIt = regexp.MustCompile("(?s)## Run it\n(.*?)\n## Read\n")

// chapters are the pages of docs/learn with a number.
func chapters(t *testing.T) (tree, map[string]string) {
	t.Helper()
	repository, found := read(t), map[string]string{}
	for page, text := range repository.pages {
		if ok, _ := path.Match("docs/learn/[0-9]-*.md", page); ok {
			found[page] = text
		}
	}
	require.Len(t, found, 8)
	return repository, found
}

func TestLearn_EachChapterHasItsParts(t *testing.T) {
	t.Parallel()
	_, all := chapters(t)
	for page, text := range all {
		for _, part := range []string{"\n```mermaid\n", "\n## Run it\n", "\n## Read\n", "\n## Question\n", "<details><summary>Answer</summary>"} {
			require.Equal(t, 1, strings.Count(text, part), "%s: %s", page, part)
		}
	}
}

// TestLearn_CIRunsEachCommand says why CI runs a command: most are scenarios or tests, and CI runs
// all of those.
func TestLearn_CIRunsEachCommand(t *testing.T) {
	t.Parallel()
	repository, all := chapters(t)
	ci := repository.files[".ci/run"]
	require.Contains(t, ci, "test:all")
	require.Contains(t, repository.files["scripts/test-all.sh"], "suite scenarios scripts/scenarios/run.sh")
	for page, text := range all {
		commands := 0
		for _, block := range fence.FindAllStringSubmatch(runIt.FindString(text), -1) {
			for line := range strings.Lines(block[2]) {
				commands++
				require.True(t, repository.ciRuns(ci, strings.Fields(line)), "%s: %s", page, line)
			}
		}
		require.Positive(t, commands, page)
	}
}

// ciRuns reports whether CI runs what a command of a chapter runs, or more.
func (r tree) ciRuns(ci string, command []string) bool {
	last := command[len(command)-1]
	switch {
	case strings.HasPrefix(command[0], "scripts/scenarios/"):
		return r.has(command[0])
	case command[0] == "docs/model/check.sh":
		return strings.Contains(ci, `step model "${task[@]}" model`) && r.has("docs/model/"+last+".pml")
	case command[0] == "go" && strings.Contains(strings.Join(command, " "), "go test -C loadtest/others"):
		return strings.Contains(ci, "go test -C loadtest/others ") && r.hasTest("loadtest/others", flagOf(command, "-run"))
	case command[0] == "go":
		return r.hasTest(path.Clean(last), flagOf(command, "-run"))
	case command[0] == "task" && command[1] == "test:faults":
		return strings.Contains(ci, last+" ") // the seed that CI takes
	case command[0] == "task" && command[1] == "test:mutants":
		_, mutants, _ := strings.Cut(ci, "env ONLY=")
		mutants, _, _ = strings.Cut(mutants, " ")
		return strings.Contains(","+mutants+",", ","+strings.TrimPrefix(last, "ONLY=")+",")
	}
	return false
}

// flagOf returns the value of a flag.
func flagOf(command []string, flag string) string {
	for i, word := range command[:len(command)-1] {
		if word == flag {
			return command[i+1]
		}
	}
	return ""
}

// hasTest reports whether a package has a test whose name contains a word.
func (r tree) hasTest(folder, word string) bool {
	named := regexp.MustCompile(`(?m)^func Test\w*` + word)
	for where, text := range r.files {
		if path.Dir(where) == folder && strings.HasSuffix(where, "_test.go") && named.MatchString(text) {
			return true
		}
	}
	return false
}
