package idempotency_test

import (
	"go/ast"
	"go/doc"
	"go/parser"
	"go/token"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// maxNames bounds how many lines `go doc -short` prints for this package: what a new user reads.
const maxNames = 70

// TestNames_AreFewAndEachHasASentence reads the package as `go doc` does.
func TestNames_AreFewAndEachHasASentence(t *testing.T) {
	t.Parallel()
	set := token.NewFileSet()
	names, err := filepath.Glob("*.go")
	require.NoError(t, err)
	var files []*ast.File
	for _, name := range names {
		file, err := parser.ParseFile(set, name, nil, parser.ParseComments)
		require.NoError(t, err)
		files = append(files, file)
	}
	p, err := doc.NewFromFiles(set, files, "github.com/oncepay/oncepay/idempotency")
	require.NoError(t, err)
	lines := 0
	sentence := func(name, text string) {
		lines++
		require.Regexp(t, `(?s)^\S.*[.:]`, text, "%s needs a sentence", name)
	}
	values := func(groups []*doc.Value) {
		for _, group := range groups {
			lines++
			for _, spec := range group.Decl.Specs {
				value := spec.(*ast.ValueSpec)
				require.NotEmpty(t, group.Doc+value.Doc.Text()+value.Comment.Text(), "%s needs a sentence", value.Names[0])
			}
		}
	}
	functions := func(all []*doc.Func) {
		for _, f := range all {
			sentence(f.Name, f.Doc)
		}
	}
	values(p.Consts)
	values(p.Vars)
	functions(p.Funcs)
	for _, named := range p.Types {
		sentence(named.Name, named.Doc)
		values(named.Consts)
		values(named.Vars)
		functions(named.Funcs)
		for _, method := range named.Methods {
			require.NotEmpty(t, method.Doc, "%s.%s needs a sentence", named.Name, method.Name)
		}
	}
	require.LessOrEqual(t, lines, maxNames)
	require.Greater(t, lines, maxNames/2, "it reads the package")
	t.Logf("%d lines of %d", lines, maxNames)
}
