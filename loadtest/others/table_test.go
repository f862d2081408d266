package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTable_HasTheSumsOfEachSystem(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"none-1":    `{"system":"none","seed":1,"faults":2,"score":{"doubled_keys":5}}`,
		"oncepay-2": `{"system":"oncepay","seed":12,"faults":3,"attempts":7}`,
		"oncepay-1": `{"system":"oncepay","seed":2,"faults":4,"attempts":1}`,
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	paths, err := filepath.Glob(filepath.Join(dir, "*"))
	require.NoError(t, err)
	var out strings.Builder
	require.NoError(t, printTable(paths, &out))
	for _, line := range []string{"| | oncepay | none |", "|---|--:|--:|", "| seeds | 2, 12 | 1 |", "| faults | 7 | 2 |", "| attempts | 8 | 0 |",
		"| **keys with more than one effect** | 0 | 5 |"} {
		require.Contains(t, out.String(), line+"\n")
	}
}
