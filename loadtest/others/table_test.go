package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/loadtest/faults/verify"
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
	jq := append([]string{"--slurp", "--raw-output", "--from-file", "table.jq"}, paths...)
	out, err := exec.CommandContext(t.Context(), "jq", jq...).CombinedOutput()
	require.NoError(t, err, string(out))
	for _, line := range []string{"|  | oncepay | none |", "| --- | --: | --: |", "| seeds | 2, 12 | 1 |", "| faults | 7 | 2 |", "| attempts | 8 | 0 |",
		"| **keys with more than one effect** | 0 | 5 |"} {
		require.Contains(t, string(out), line+"\n")
	}
}

func TestTable_HasAllFiguresOfAScore(t *testing.T) {
	t.Parallel()
	raw, err := json.Marshal(verify.Score{})
	require.NoError(t, err)
	score := map[string]int{}
	require.NoError(t, json.Unmarshal(raw, &score))
	table, err := os.ReadFile("table.jq")
	require.NoError(t, err)
	for _, figure := range regexp.MustCompile(`"score\.(\w+)"`).FindAllStringSubmatch(string(table), -1) {
		require.Contains(t, score, figure[1])
		delete(score, figure[1])
	}
	require.Empty(t, score)
}
