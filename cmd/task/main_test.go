package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestToRoot_FromAFolderBelow(t *testing.T) {
	root, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	require.NoError(t, os.MkdirAll(filepath.Join(root, "a", "b"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(root, "Taskfile.yml"), nil, 0o600))
	t.Chdir(filepath.Join(root, "a", "b"))
	require.NoError(t, toRoot())
	here, err := os.Getwd()
	require.NoError(t, err)
	require.Equal(t, root, here)
}

func TestToRoot_OutsideOfAClone(t *testing.T) {
	t.Chdir(t.TempDir())
	require.ErrorContains(t, toRoot(), "no Taskfile.yml")
}
