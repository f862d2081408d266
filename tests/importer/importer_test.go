// Package importer_test builds programs outside of this tree that import the
// library's modules, and bounds what an importer's go.sum gets from each.
package importer_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const library = "github.com/oncepay/oncepay/idempotency"

// modules are the library's, by their folders below idempotency/.
var modules = []string{"", "/redisstore", "/pgstore", "/authority", "/grpconce"}

func TestImporter_GetsFewModules(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		imports []string
		most    int // lines of go.sum
	}{
		{[]string{library, library + "/memstore", library + "/storetest"}, 12},
		{[]string{library, library + "/redisstore"}, 30},
		{[]string{library, library + "/pgstore"}, 31},
		{[]string{library, library + "/authority"}, 33},
		{[]string{library, library + "/grpconce"}, 56},
	} {
		t.Run(c.imports[len(c.imports)-1], func(t *testing.T) {
			t.Parallel()
			dir := program(t, c.imports)
			run(t, dir, "mod", "tidy")
			run(t, dir, "build", "-o", os.DevNull, ".")
			sums, err := os.ReadFile(filepath.Join(dir, "go.sum"))
			require.NoError(t, err)
			lines := strings.Count(string(sums), "\n")
			require.Positive(t, lines)
			require.LessOrEqual(t, lines, c.most, "lines of go.sum:\n%s", sums)
		})
	}
}

// TestModules_AreTidy holds for each go.mod what `go mod tidy` would write.
func TestModules_AreTidy(t *testing.T) {
	t.Parallel()
	for _, module := range append(modules, "/recipes") {
		run(t, folder(t, module), "mod", "tidy", "-diff")
	}
}

// program writes a program that only imports, in a module of its own.
func program(t *testing.T, imports []string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	mod := "module example.com/importer\n\ngo 1.26.0\n"
	for _, module := range modules {
		mod += "replace " + library + module + " => " + folder(t, module) + "\n"
	}
	source := "package main\n\nfunc main() {}\n"
	for _, path := range imports {
		source = strings.Replace(source, "\nfunc", "\nimport _ \""+path+"\"\nfunc", 1)
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, "go.mod"), []byte(mod), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "main.go"), []byte(source), 0o600))
	return dir
}

func folder(t *testing.T, module string) string {
	t.Helper()
	path, err := filepath.Abs("../../idempotency" + module)
	require.NoError(t, err)
	return path
}

func run(t *testing.T, dir string, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOFLAGS=", "GOWORK=off")
	output, err := cmd.CombinedOutput()
	require.NoError(t, err, "go %s: %s", strings.Join(args, " "), output)
}
