package deployment

import (
	"context"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/internal/localserver"
	"github.com/oncepay/oncepay/internal/stack/topology"
)

func TestState_IsOnDiskAfterEveryChange(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s, err := loadState(dir)
	require.NoError(t, err)
	var writers sync.WaitGroup
	for i, name := range topology.Services {
		writers.Go(func() { _ = s.SetService(name, ServiceState{Process: localserver.Process{PID: i + 1, Start: "x"}}) })
	}
	writers.Wait()

	again, err := loadState(dir)
	require.NoError(t, err)
	require.Equal(t, s.Data, again.Data)
	require.Len(t, again.Data.Services, len(topology.Services))
}

func TestLock_AllowsOneCommandAtATime(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "stack")
	var inside, most atomic.Int32
	var commands sync.WaitGroup
	for i := range 8 {
		commands.Go(func() {
			unlock, err := lockDir(testContext(t), dir, nil)
			if err != nil {
				t.Error(err)
				return
			}
			most.Store(max(most.Load(), inside.Add(1)))
			inside.Add(-1)
			if i%2 == 0 { // like `down`: the others are waiting for a folder that is no longer there
				if err := (&Deployment{Dir: dir}).Remove(); err != nil {
					t.Error(err)
				}
			}
			unlock()
		})
	}
	commands.Wait()
	require.EqualValues(t, 1, most.Load())
}

func TestLock_WaiterLearnsWhoHoldsIt(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "stack")
	unlock, err := lockDir(testContext(t), dir, nil)
	require.NoError(t, err)
	defer unlock()
	ctx, cancel := context.WithCancel(testContext(t))
	_, err = lockDir(ctx, dir, func(pid int) {
		require.Equal(t, os.Getpid(), pid)
		cancel()
	})
	require.ErrorIs(t, err, context.Canceled)
}

func TestState_RefusesAForeignFolder(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "thesis.tex"), nil, 0o600))
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	_, err := lockDir(ctx, dir, nil)
	require.ErrorContains(t, err, "not a stack's")
}
