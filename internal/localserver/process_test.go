package localserver

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// sleeper starts a process that does nothing until it is ended.
func sleeper(t *testing.T) Process {
	t.Helper()
	p, err := Command{
		Path: "/bin/sleep", Args: []string{"600"}, Log: filepath.Join(t.TempDir(), "log"), ParentDeath: syscall.SIGKILL,
	}.Start()
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, p.Kill()) })
	return p
}

func TestProcess_NeverSignalsARecycledPID(t *testing.T) {
	t.Parallel()
	real := sleeper(t)
	// What the state file would hold if our process had ended and its pid had been given to
	// somebody else.
	recycled := Process{PID: real.PID, Start: real.Start + "0"}

	require.False(t, recycled.Alive())
	require.ErrorIs(t, recycled.Signal(syscall.SIGKILL), os.ErrProcessDone)
	require.NoError(t, recycled.Stop(t.Context(), syscall.SIGKILL, time.Second))
	require.NoError(t, recycled.Kill())
	require.True(t, real.Alive(), "the stranger lives")
}

func TestProcess_ZeroValueIsNoProcess(t *testing.T) {
	t.Parallel()
	require.False(t, Process{}.Alive())
	require.ErrorIs(t, Process{}.Signal(syscall.SIGKILL), os.ErrProcessDone) // pid 0 would be our whole process group
	require.NoError(t, Process{}.Stop(t.Context(), syscall.SIGKILL, time.Second))
}

func TestStop_EndsAPausedProcess(t *testing.T) {
	t.Parallel()
	p := sleeper(t)
	require.NoError(t, p.Signal(syscall.SIGSTOP))
	require.Eventually(t, p.IsPaused, testTimeout, PollInterval)
	require.NoError(t, p.Stop(t.Context(), syscall.SIGTERM, testTimeout))
	require.False(t, p.Alive())
}

// A server's sessions are processes of their own: PostgreSQL that is half paused would go on
// answering.
func TestSignalTree_ReachesTheChildren(t *testing.T) {
	t.Parallel()
	log := filepath.Join(t.TempDir(), "log")
	p, err := Command{Path: "/bin/sh", Args: []string{"-c", "sleep 600 & echo $!; wait"}, Log: log, ParentDeath: syscall.SIGKILL}.Start()
	require.NoError(t, err)
	child := childOf(t, log)
	require.NoError(t, p.SignalTree(syscall.SIGSTOP))
	require.Eventually(t, func() bool { return p.IsPaused() && child.IsPaused() }, testTimeout, PollInterval)
	require.NoError(t, p.SignalTree(syscall.SIGCONT))
	require.Eventually(t, func() bool { return !p.IsPaused() && !child.IsPaused() }, testTimeout, PollInterval)
	require.NoError(t, p.Kill())
	require.ErrorIs(t, p.SignalTree(syscall.SIGSTOP), os.ErrProcessDone)
}

// childOf is the process whose pid is in a log.
func childOf(t *testing.T, log string) (child Process) {
	t.Helper()
	require.Eventually(t, func() bool {
		pid, err := strconv.Atoi(Tail(log))
		if err == nil {
			child, err = identify(pid)
		}
		return err == nil
	}, testTimeout, PollInterval)
	return child
}

// TestKillOrphans_EndsWhatADeadProcessHasLeft, such as the workers of an nginx whose master was
// killed, and no process that works elsewhere.
func TestKillOrphans_EndsWhatADeadProcessHasLeft(t *testing.T) {
	t.Parallel()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	log := filepath.Join(dir, "log")
	p, err := Command{Path: "/bin/sh", Args: []string{"-c", "sleep 600 & echo $!; wait"}, Dir: dir, Log: log, ParentDeath: syscall.SIGKILL}.Start()
	require.NoError(t, err)
	child := childOf(t, log)
	require.NoError(t, p.KillOrphans(dir))
	require.True(t, child.Alive(), "it is no orphan while its parent lives")
	require.NoError(t, p.Kill())
	require.NoError(t, p.KillOrphans(filepath.Dir(dir)))
	require.NoError(t, p.KillOrphans(""))
	require.True(t, child.Alive(), "it works in another directory")
	require.NoError(t, p.KillOrphans(dir))
	require.False(t, child.Alive())
}

func TestStop_KillsWhatIgnoresTheSignal(t *testing.T) {
	t.Parallel()
	log := filepath.Join(t.TempDir(), "log")
	p, err := Command{Path: "/bin/sh", Args: []string{"-c", "trap '' TERM; echo deaf; while :; do sleep 0.05; done"}, Log: log}.Start()
	require.NoError(t, err)
	require.Eventually(t, func() bool { return Tail(log) == "deaf" }, testTimeout, PollInterval)
	require.NoError(t, p.Stop(t.Context(), syscall.SIGTERM, 50*time.Millisecond))
}

func TestServer_DiesWithItsParent(t *testing.T) {
	if os.Getenv("STACK_TEST_PARENT") != "" {
		server, err := Redis.Start(testContext(t), Config{DieWithParent: true})
		require.NoError(t, err)
		_, err = fmt.Println("started", server.Process.PID, server.DataDir)
		require.NoError(t, err)
		<-t.Context().Done() // until we are killed
	}
	t.Parallel()
	parent := exec.CommandContext(testContext(t), os.Args[0], "-test.run", "^"+t.Name()+"$", "-test.timeout", testTimeout.String())
	parent.Env = append(os.Environ(), "STACK_TEST_PARENT=1")
	out, err := parent.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, parent.Start())
	var child Process
	for lines := bufio.NewScanner(out); child.PID == 0 && lines.Scan(); {
		var dir string
		if n, _ := fmt.Sscanf(lines.Text(), "started %d %s", &child.PID, &dir); n == 2 {
			t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
			child, err = identify(child.PID)
			require.NoError(t, err)
		}
	}
	require.True(t, child.Alive())

	require.NoError(t, parent.Process.Kill())
	require.Error(t, parent.Wait())
	require.Eventually(t, func() bool { return !child.Alive() }, testTimeout, PollInterval)
}
