package localserver

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestServerDir_CanBeEnteredByItsUser(t *testing.T) {
	t.Parallel()
	user, err := unprivileged()
	require.NoError(t, err)
	locked := filepath.Join(t.TempDir(), "private")
	require.NoError(t, os.Mkdir(locked, 0o700))

	dir, err := serverDir(filepath.Join(locked, "data"), "test", user)
	require.NoError(t, err)
	temporary := IsTemporaryDir(dir)
	require.Equal(t, user != nil, temporary, "only root starts servers as another user")
	if temporary {
		t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
		require.True(t, reachable(dir, user))
	}
}
