// Package stacktest starts stacks for tests.
package stacktest

import (
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/internal/stack"
	"github.com/oncepay/oncepay/internal/wait"
)

// Up starts a stack on free ports, and stops it with the test. A stack in the same folder that a
// killed run left behind is stopped before. One of a test that still runs is waited for.
func Up(ctx context.Context, t testing.TB, o stack.Options) *stack.Stack {
	t.Helper()
	folder, err := filepath.Abs(o.Dir)
	require.NoError(t, err)
	lock, err := os.Create(filepath.Join(os.TempDir(), fmt.Sprintf("oncepay-test-%.8x", sha256.Sum256([]byte(folder))))) //nolint:gosec // it stays empty
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, lock.Close()) })
	require.NoError(t, wait.Until(ctx, time.Second, func(context.Context) error {
		return syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	}), "another test uses %s", folder)

	offset, release := stack.FreeOffset()
	t.Cleanup(release)
	if o.Driver == stack.Compose {
		release() // Docker listens on them
	}
	o.PortOffset = offset
	s, err := stack.New(o)
	require.NoError(t, err)
	require.NoError(t, s.Down(ctx))
	t.Cleanup(func() { require.NoError(t, s.Down(context.WithoutCancel(ctx))) })
	require.NoError(t, s.Up(ctx))
	return s
}
