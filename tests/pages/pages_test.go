// Package pages_test checks what the pages (*.md) point to: links, files, commands, tests. Code
// that points to a section of a page is checked, too.
package pages_test

import (
	"cmp"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Patterns of what pages contain. A folder of ours begins every path that is checked.
var (
	link    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	fence   = regexp.MustCompile("(?ms)^```([a-z]*)[^\n]*\n(.*?\n)```$")
	span    = regexp.MustCompile("`([^`\n]+)`")
	heading = regexp.MustCompile(`(?m)^#+ +(.*)$`)
	file    = regexp.MustCompile(`(?:^|[\s"'(=|])(?:\./)?((?:\.ci|api|cmd|db|deploy|docs|idempotency|internal|loadtest|scripts|sql|tests|tools)/[\w./*-]*[\w*])`)
	name    = regexp.MustCompile(`^[\w-]+\.(?:go|sh|md|ya?ml|sql|json|lua|pml|conf|mod)$`)
	task    = regexp.MustCompile(`(?:^|\s)task ([a-z]+(?::[a-z-]+)*)`)
	command = regexp.MustCompile(`(?:^|; |# |cmd/|bin/)(stack|oncepay) ((?:--?[a-z][\w-]*|[a-z]+)(?: --?[a-z][\w-]*)*)`)
	test    = regexp.MustCompile(`\b(Test[A-Z]\w+)\b`)
	setting = regexp.MustCompile(`^[A-Z]+_[A-Z_]+$`)
	pointer = regexp.MustCompile(`(?:^|[\s"'(])((?:docs/[\w/.-]+|README)\.md)(#[\w-]+)?`)
	made    = regexp.MustCompile(`(?m)^// Code generated .* DO NOT EDIT\.$`)
	pattern = regexp.MustCompile(`NN|SEED|<|…`)       // stands for any name
	dropped = regexp.MustCompile(`[^\p{L}\p{N}_\- ]`) // from a heading, in its anchor
)

// tree is the repository: its text files by their paths, and its pages.
type tree struct {
	files, pages map[string]string
	sections     map[string][]string // the anchors of each page's headings
	all          string              // the text of all Go files
}

func TestPages_LinkToWhatExists(t *testing.T) {
	t.Parallel()
	repository := read(t)
	for page, text := range repository.pages {
		for _, found := range link.FindAllStringSubmatch(prose(text), -1) {
			target, anchor, _ := strings.Cut(found[1], "#")
			if strings.Contains(target, ":") {
				continue // another site
			}
			target = cmp.Or(path.Join(path.Dir(page), target), ".")
			if found[1][0] == '#' {
				target = page
			}
			require.True(t, repository.has(target), "%s links to %s", page, found[1])
			repository.requireSection(t, page, target, anchor)
		}
	}
}

func TestPages_NameFilesThatExist(t *testing.T) {
	t.Parallel()
	repository := read(t)
	for page, text := range repository.pages {
		for _, code := range codeOf(text) {
			for _, found := range file.FindAllStringSubmatch(code, -1) {
				exists := repository.ignores(found[1]) || repository.has(found[1]) || repository.has(path.Join(path.Dir(page), found[1]))
				require.True(t, exists || pattern.MatchString(code), "%s names the file %s", page, found[1])
			}
			if name.MatchString(code) && !pattern.MatchString(code) {
				require.True(t, repository.hasName(code), "%s names the file %s", page, code)
			}
		}
	}
}

func TestPages_NameCommandsThatExist(t *testing.T) {
	t.Parallel()
	repository := read(t)
	for page, text := range repository.pages {
		for _, code := range codeOf(text) {
			for _, found := range task.FindAllStringSubmatch(code, -1) {
				exists := strings.Contains(repository.files["Taskfile.yml"], "\n  "+found[1]+":\n")
				require.True(t, exists, "%s: task %s", page, found[1])
			}
			for _, found := range command.FindAllStringSubmatch(code, -1) {
				for _, word := range strings.Fields(found[2]) {
					require.True(t, repository.knows(found[1], strings.TrimLeft(word, "-")), "%s: %s %s", page, found[1], word)
				}
			}
		}
	}
}

func TestPages_NameSettingsThatExist(t *testing.T) {
	t.Parallel()
	repository := read(t)
	for page, text := range repository.pages {
		for _, code := range codeOf(text) {
			if !setting.MatchString(code) || strings.HasPrefix(code, "OTEL_") { // a library reads those
				continue
			}
			require.True(t, repository.mentions(code), "%s names the setting %s", page, code)
		}
	}
}

func TestPages_NameTestsThatExist(t *testing.T) {
	t.Parallel()
	repository := read(t)
	for page, text := range repository.pages {
		for _, code := range codeOf(text) {
			for _, found := range test.FindAllStringSubmatch(code, -1) {
				exists := strings.Contains(repository.all+code, "func "+found[1])
				require.True(t, exists, "%s names the test %s", page, found[1])
			}
		}
	}
}

func TestCode_PointsToSectionsThatExist(t *testing.T) {
	t.Parallel()
	repository := read(t)
	for source, text := range repository.files {
		for line := range strings.Lines(text) {
			if !strings.Contains(line, ".md") { // far quicker than the pattern
				continue
			}
			for _, found := range pointer.FindAllStringSubmatch(line, -1) {
				page := found[1]
				if page == "README.md" && repository.has(path.Join(path.Dir(source), page)) {
					page = path.Join(path.Dir(source), page)
				}
				require.True(t, repository.has(page), "%s points to %s", source, page)
				repository.requireSection(t, source, page, strings.TrimPrefix(found[2], "#"))
			}
		}
	}
}

// A tab counts as four columns.
func TestCode_CommentsAreAtMost100ColumnsWide(t *testing.T) {
	t.Parallel()
	for source, text := range read(t).files {
		if path.Ext(source) != ".go" || made.MatchString(text) {
			continue
		}
		for line := range strings.Lines(text) {
			line = strings.TrimSuffix(line, "\n")
			if !strings.HasPrefix(strings.TrimSpace(line), "// ") {
				continue
			}
			width := utf8.RuneCountInString(strings.ReplaceAll(line, "\t", "    "))
			assert.LessOrEqual(t, width, 100, "%s: %s", source, line)
		}
	}
}

// read returns the repository without what is generated or hidden.
func read(t *testing.T) tree {
	t.Helper()
	repository, err := readOnce()
	require.NoError(t, err)
	return repository
}

var readOnce = sync.OnceValues(func() (tree, error) {
	repository := tree{files: map[string]string{}, pages: map[string]string{}, sections: map[string][]string{}}
	var all strings.Builder
	root := os.DirFS(filepath.Join("..", ".."))
	ignored, err := fs.ReadFile(root, ".gitignore")
	if err != nil {
		return repository, err
	}
	repository.files[".gitignore"] = string(ignored)
	err = fs.WalkDir(root, ".", func(where string, entry fs.DirEntry, err error) error {
		hidden := strings.HasPrefix(entry.Name(), ".") && entry.Name() != "." && entry.Name() != ".ci"
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (hidden || repository.ignores(where)):
			return fs.SkipDir
		case entry.IsDir() || !entry.Type().IsRegular():
			return nil
		}
		text, err := fs.ReadFile(root, where)
		switch path.Ext(where) {
		case ".md":
			repository.pages[where] = string(text)
			for _, found := range heading.FindAllStringSubmatch(prose(string(text)), -1) {
				repository.sections[where] = append(repository.sections[where], slug(found[1]))
			}
		case ".go":
			all.Write(text)
		}
		repository.files[where] = string(text)
		return err
	})
	repository.all = all.String()
	return repository, err
})

// has reports whether a file, a folder or a match of a pattern exists.
func (r tree) has(where string) bool {
	where = path.Clean(where)
	if _, exact := r.files[where]; exact {
		return true
	}
	for existing := range r.files {
		matches, err := path.Match(where, existing)
		if where == "." || (err == nil && matches) || strings.HasPrefix(existing, where+"/") {
			return true
		}
	}
	return false
}

// ignores reports whether git ignores a path: it is made by a command, such as a report.
func (r tree) ignores(where string) bool {
	return slices.ContainsFunc(strings.Fields(r.files[".gitignore"]), func(ignored string) bool {
		ignored = strings.Trim(ignored, "/")
		return where == ignored || strings.HasPrefix(where, ignored+"/")
	})
}

func (r tree) hasName(base string) bool {
	for existing := range r.files {
		if path.Base(existing) == base {
			return true
		}
	}
	return false
}

// mentions reports whether a word stands in a file that is no page.
func (r tree) mentions(word string) bool {
	for where, text := range r.files {
		if path.Ext(where) != ".md" && strings.Contains(text, word) {
			return true
		}
	}
	return false
}

// knows reports whether a program of ours has a command or a flag: they stand quoted, or in a line
// of its usage text.
func (r tree) knows(program, word string) bool {
	for source, text := range r.files {
		ours := strings.HasPrefix(source, "cmd/"+program+"/") && !strings.HasSuffix(source, "_test.go")
		if ours && regexp.MustCompile(`(?m)"`+word+`"|^  .*\b`+word+`\b`).MatchString(text) {
			return true
		}
	}
	return false
}

func (r tree) requireSection(t *testing.T, source, page, anchor string) {
	t.Helper()
	if anchor == "" {
		return
	}
	require.Contains(t, r.sections[page], anchor, "%s points to a section of %s", source, page)
}

// slug is the anchor that GitHub makes of a heading.
func slug(title string) string {
	return strings.ReplaceAll(dropped.ReplaceAllString(strings.ToLower(title), ""), " ", "-")
}

// prose is a page without its blocks of code.
func prose(text string) string { return fence.ReplaceAllString(text, "") }

// codeOf returns the code of a page: each span, and each line of a block.
func codeOf(text string) (code []string) {
	for _, found := range fence.FindAllStringSubmatch(text, -1) {
		if found[1] != "mermaid" {
			code = append(code, strings.Split(found[2], "\n")...)
		}
	}
	for _, found := range span.FindAllStringSubmatch(prose(text), -1) {
		code = append(code, found[1])
	}
	return code
}
