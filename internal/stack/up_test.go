package stack

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// newStack is one in which nothing runs.
func newStack(t *testing.T, opts Options) *Stack {
	t.Helper()
	offset, release := FreeOffset()
	t.Cleanup(release)
	opts.Dir, opts.PortOffset = t.TempDir(), offset
	s, err := New(opts)
	require.NoError(t, err)
	return s
}

// Holding a port does not keep another test from holding it: only a socket that listens does.
func TestFreeOffset_ReturnsNoneTwiceAtATime(t *testing.T) {
	t.Parallel()
	returned := map[int]bool{}
	for range 40 {
		offset, release := FreeOffset()
		t.Cleanup(release)
		require.False(t, returned[offset], "it was returned before, and is not released")
		returned[offset] = true
	}
}

func TestBuild_TrustsNoProgramOfABuildThatWasKilled(t *testing.T) {
	t.Parallel()
	s := newStack(t, Options{BuildTags: "killed"}) // a folder of its own
	require.NoError(t, s.build(t.Context()))       // in minutes, if nothing is compiled yet
	whole, err := os.Stat(s.Program(Oncepay))
	require.NoError(t, err)
	linked := filepath.Join(s.root, ".task", "stack", "tags=killed")
	require.NoError(t, os.Truncate(filepath.Join(linked, Oncepay), whole.Size()/2))
	require.NoError(t, os.Remove(linked+".whole"), "a build begins with this")
	require.NoError(t, s.build(t.Context()))
	again, err := os.Stat(s.Program(Oncepay))
	require.NoError(t, err)
	require.Equal(t, whole.Size(), again.Size())
}

// decided is what `up` decides first.
func (s *Stack) decided(t *testing.T) error {
	t.Helper()
	_, err := s.decide(testContext(t))
	return err
}

func TestProgram_NeedsTheNativeDriver(t *testing.T) {
	t.Parallel()
	s := newStack(t, Options{Driver: Compose, Programs: map[string]string{API1: "/another"}})
	require.ErrorContains(t, s.decided(t), "native")
}

func TestDirect_IsDecidedAtTheFirstUp(t *testing.T) {
	t.Parallel()
	s := newStack(t, Options{Driver: Native})
	require.NoError(t, s.decided(t))
	s.options.Direct = true
	require.ErrorContains(t, s.decided(t), "take it down first")
	s = newStack(t, Options{Driver: Compose, Direct: true})
	require.ErrorContains(t, s.decided(t), "only the native driver")
}

func TestUp_LaterCommandsKnowWhatItDecided(t *testing.T) {
	t.Parallel()
	s := newStack(t, Options{Direct: true, Driver: Native})
	require.NoError(t, s.decided(t))
	later, err := New(Options{Dir: s.Dir})
	require.NoError(t, err)
	require.Equal(t, s.Topology, later.Topology)
	require.True(t, later.Direct)
	require.NotContains(t, later.Services(), Proxy)
}

func TestRedisKind_IsChosenAtTheFirstUp(t *testing.T) {
	t.Parallel()
	s := newStack(t, Options{Redis: Sentinel, Driver: Compose})
	require.ErrorContains(t, s.decided(t), "only the native driver")

	s = newStack(t, Options{Redis: Sentinel})
	require.NoError(t, s.decided(t))
	require.Equal(t, Native, s.state.Driver)
	require.Contains(t, s.Services(), RedisReplica)

	s.options.Redis = "" // as a later command has it
	require.NoError(t, s.decided(t))
	require.True(t, s.IsReplicated())

	s.options.Redis = Single
	require.ErrorContains(t, s.decided(t), "take it down first")
}

func TestKill_NeedsAReplicaOfRedis(t *testing.T) {
	t.Parallel()
	s, ctx := newStack(t, Options{Driver: Native}), testContext(t)
	require.NoError(t, s.locked(ctx, func() error { return s.decided(t) }))
	require.ErrorContains(t, s.Do(ctx, "kill", RedisReplica), "--redis sentinel")
}

func TestConsole_StaysUntilDown(t *testing.T) {
	t.Parallel()
	s := newStack(t, Options{Console: true, Driver: Native})
	require.NoError(t, s.decided(t))
	s.options.Console = false
	require.NoError(t, s.decided(t))
	later, err := New(Options{Dir: s.Dir})
	require.NoError(t, err)
	require.Equal(t, "http://"+s.Addr(Console), later.ConsoleURL())

	s = newStack(t, Options{Console: true, Driver: Compose})
	require.NoError(t, s.decided(t))
	require.Empty(t, s.ConsoleURL(), "the native driver alone has one")
}
