package programs

import (
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// place makes an executable script.
func place(t *testing.T, dir, name, script string) {
	t.Helper()
	// A process that another test starts meanwhile would hold the file open for writing, and "text
	// file busy" refuses to execute it.
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+script), 0o755))
}

func TestFind_TakesTheFirstThatIsNewEnough(t *testing.T) {
	t.Parallel()
	p := &Program{Name: "Server", Oldest: 7, probe: version, files: []string{"server-of-a-test", "fork-of-a-test"}}
	first, second := t.TempDir(), t.TempDir()
	dirs := []string{first, second}
	_, err := p.findIn(dirs)
	require.EqualError(t, err, "Server 7 or later is not installed")

	place(t, first, "server-of-a-test", "echo 'server v=6.2.1'")
	_, err = p.findIn(dirs)
	require.EqualError(t, err, "Server 7 or later is needed, and "+first+"/server-of-a-test is version 6, which is too old")

	place(t, first, "fork-of-a-test", "echo 'fork v=8.0.0'")
	found, err := p.findIn(dirs)
	require.NoError(t, err)
	require.Equal(t, filepath.Join(first, "fork-of-a-test"), found)

	place(t, second, "server-of-a-test", "echo 'server v=7.0.15'")
	found, err = p.findIn(dirs)
	require.NoError(t, err)
	require.Equal(t, filepath.Join(second, "server-of-a-test"), found)
}

func TestFind_LooksWherePackagesPutTheirPrograms(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p := &Program{Name: "Server", Oldest: 15, probe: version, files: []string{dir + "/*/server"}}
	for _, version := range []string{"13", "15", "17"} {
		require.NoError(t, os.Mkdir(filepath.Join(dir, version), 0o755))
		place(t, filepath.Join(dir, version), "server", "echo Server "+version+".2")
	}
	found, err := p.findIn(nil)
	require.NoError(t, err)
	require.Equal(t, filepath.Join(dir, "17", "server"), found)
}

func TestFind_WantsAProgramThatWorks(t *testing.T) {
	t.Parallel()
	p := &Program{Name: "compiler", files: []string{"compiler-of-a-test"}, probe: []string{"-E"}}
	first := t.TempDir()
	dirs := []string{first}
	place(t, first, "compiler-of-a-test", `[ "$1" = -E ] && exit 1`)
	_, err := p.findIn(dirs)
	require.EqualError(t, err, "compiler is not installed")
}

// TestNeeds_AreSaidOfEveryTask reads the names in Taskfile.yml: those of tools are internal.
func TestNeeds_AreSaidOfEveryTask(t *testing.T) {
	t.Parallel()
	taskfile, err := os.ReadFile("../../Taskfile.yml")
	require.NoError(t, err)
	tasks := []string{Stack, Pooler, "airgap-images", "ci"} // these are no tasks
	for _, m := range regexp.MustCompile(`(?m)^  ([a-z:-]+):\n    desc`).FindAllSubmatch(taskfile, -1) {
		tasks = append(tasks, string(m[1]))
	}
	known := []string{"default", "down", "status", "build"} // they need none
	for task, programs := range needs() {
		known = append(known, task)
		if task == "kubernetes:try" || task == "recording" { // before a release
			continue
		}
		for _, p := range programs {
			require.Contains(t, append(needs()["ci"], Docker, Compose), p, "CI runs everything; these two where there is an engine")
		}
	}
	slices.Sort(tasks)
	slices.Sort(known)
	require.Equal(t, known, tasks)
}

func TestNeeds_AreThoseOfAllTasksTogether(t *testing.T) {
	t.Parallel()
	require.Equal(t, []*Program{Compiler, Spin, Chromium, PostgreSQL, Redis, Nginx}, Needs("model", "test:console", "--silent", "SEED=1", "no-task"))
	require.Empty(t, Needs("down"))
}

func TestVersions_AreOfWhatAStackRuns(t *testing.T) {
	t.Parallel()
	require.Regexp(t, `^`+runtime.Version()+`, PostgreSQL [\d.]*, Redis [\d.]*, nginx [\d.]*, `+runtime.GOOS+`/\w+, \d+ CPUs$`, Versions(t.Context()))
}
