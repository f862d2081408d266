package stack

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/internal/localserver"
)

func TestState_IsOnDiskAfterEveryChange(t *testing.T) {
	t.Parallel()
	s := newStack(t, Options{})
	var writers sync.WaitGroup
	for i, name := range new(Topology).Services() {
		writers.Go(func() {
			_ = s.update(func(d *state) { d.Services[name] = serviceState{Process: localserver.Process{PID: i + 1, Start: "x"}} })
		})
	}
	writers.Wait()

	again, err := New(Options{Dir: s.Dir})
	require.NoError(t, err)
	require.Equal(t, s.state.Services, again.state.Services)
	require.Len(t, again.state.Services, len(new(Topology).Services()))
}

func TestLock_AllowsOneCommandAtATime(t *testing.T) {
	t.Parallel()
	s := &Stack{Dir: filepath.Join(t.TempDir(), "stack"), options: Options{Out: io.Discard}}
	var inside, most atomic.Int32
	var commands sync.WaitGroup
	for i := range 8 {
		commands.Go(func() {
			folder, err := s.lock(testContext(t), s.Dir)
			if err != nil {
				t.Error(err)
				return
			}
			most.Store(max(most.Load(), inside.Add(1)))
			inside.Add(-1)
			if i%2 == 0 { // like `down`: the others are waiting for a folder that is no longer there
				if err := s.remove(); err != nil {
					t.Error(err)
				}
			}
			_ = folder.Close()
		})
	}
	commands.Wait()
	require.EqualValues(t, 1, most.Load())
}

// canceler ends a wait as soon as it says something.
type canceler struct {
	text   string
	cancel func()
}

func (c *canceler) Write(text []byte) (int, error) {
	c.text += string(text)
	c.cancel()
	return len(text), nil
}

func TestLock_WaiterLearnsThatItWaits(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(testContext(t))
	out := &canceler{cancel: cancel}
	s := &Stack{Dir: filepath.Join(t.TempDir(), "stack"), options: Options{Out: out}}
	folder, err := s.lock(ctx, s.Dir)
	require.NoError(t, err)
	defer func() { _ = folder.Close() }()
	_, err = s.lock(ctx, s.Dir)
	require.ErrorIs(t, err, context.Canceled)
	require.Equal(t, "waiting for another stack command …\n", out.text)
}

func TestState_RefusesAForeignFolder(t *testing.T) {
	t.Parallel()
	s := newStack(t, Options{})
	require.NoError(t, os.WriteFile(filepath.Join(s.Dir, "thesis.tex"), nil, 0o600))
	require.ErrorContains(t, s.Up(testContext(t)), "not a stack's")
	require.NoError(t, s.Down(testContext(t)))
	require.FileExists(t, filepath.Join(s.Dir, "thesis.tex"))
}
