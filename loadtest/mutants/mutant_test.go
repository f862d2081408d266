package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/internal/stack"
	"github.com/oncepay/oncepay/loadtest/books"
	"github.com/oncepay/oncepay/loadtest/faults/fault"
	"github.com/oncepay/oncepay/loadtest/faults/verify"
)

// A change of the code that a patch removes fails here, and not in a run of an hour.
func TestMutants_ApplyToTheTreeAsItIs(t *testing.T) {
	t.Parallel()
	mutants, err := readMutants(".", nil)
	require.NoError(t, err)
	patches, err := filepath.Glob("*.patch")
	require.NoError(t, err)
	require.Len(t, mutants, len(patches), "each is called as 07-redis-scope.patch")
	most := fault.Target{Redis: stack.Sentinel, Postgres: stack.SyncStandby, Base: "an earlier release"}
	kinds := append(fault.Kinds(most), fault.Kinds(fault.Target{})...)
	for _, m := range mutants {
		t.Run(m.Name, func(t *testing.T) {
			t.Parallel()
			check := exec.CommandContext(t.Context(), "git", "apply", "--check", m.Patch)
			check.Dir = filepath.Join("..", "..")
			printed, err := check.CombinedOutput()
			require.NoError(t, err, "the patch needs to be made again: %s", printed)
			for kind := range strings.SplitSeq(m.Faults, ",") {
				require.Contains(t, kinds, kind)
			}
		})
	}
}

func TestReadMutants_ChoosesByName(t *testing.T) {
	t.Parallel()
	mutants, err := readMutants(".", []string{"settle-fence", "inbox-dedupe"})
	require.NoError(t, err)
	require.Len(t, mutants, 2)

	_, err = readMutants(".", []string{"settle-fense"})
	require.ErrorContains(t, err, `"settle-fense"`)
}

func TestReadMutants_NeedsAHeader(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "01-no-header.patch"), []byte("Removes: something\n\ndiff --git a/x b/x\n"), 0o600))
	_, err := readMutants(dir, nil)
	require.ErrorContains(t, err, "must say Removes, Breaks and Faults")
}

func TestControls_HaveTheFaultsOfAllForEachKindOfStack(t *testing.T) {
	t.Parallel()
	all := controls([]mutant{{Faults: "redis kill,replica kill", Env: "EXPIRY=short"}, {Faults: "redis kill,redis flush"},
		{Faults: "postgres promote", Env: "POSTGRES=sync-standby GENERATED=0"}})
	require.Equal(t, []mutant{
		{Name: "control", Removes: "nothing", Faults: "redis flush,redis kill,replica kill"},
		{Name: "control POSTGRES=sync-standby", Removes: "nothing", Faults: "postgres promote", Env: "POSTGRES=sync-standby"},
	}, all)
}

func TestBroken_LeavesOutWhatABusyMachineBreaks(t *testing.T) {
	t.Parallel()
	rules := func(rules ...books.Rule) (f findings) {
		for _, rule := range rules {
			f.Violations = append(f.Violations, struct{ Rule books.Rule }{rule})
		}
		return f
	}
	require.Empty(t, rules(verify.Conclusive, verify.Recovery, verify.Resources).broken())
	require.Equal(t, []string{string(books.OneCharge)}, rules(books.OneCharge, verify.Conclusive, books.OneCharge).broken())
}

func TestTable_WantsAllCaughtButTheControl(t *testing.T) {
	t.Parallel()
	charged := []string{string(books.OneCharge)}
	passes := result{mutant: mutant{Name: "control"}}
	caught := result{mutant: mutant{Name: "a", Patch: "a"}, broken: charged, took: time.Second}
	survived := result{mutant: mutant{Name: "b", Patch: "b"}}
	stale := result{mutant: mutant{Name: "c", Patch: "c"}, err: errors.New("stale")}
	broken := result{mutant: mutant{Name: "control"}, broken: charged}

	_, err := table([]result{passes, caught})
	require.NoError(t, err)
	text, err := table([]result{passes, caught, survived})
	require.ErrorContains(t, err, "1 of 3")
	for _, want := range []string{"| control | ", "passes", string(books.OneCharge), "SURVIVED"} {
		require.Contains(t, text, want)
	}
	text, err = table([]result{passes, stale})
	require.ErrorContains(t, err, "1 of 2")
	require.Contains(t, text, "NOT TRIED")
	_, err = table([]result{broken, caught})
	require.ErrorContains(t, err, "1 of 2")
}
