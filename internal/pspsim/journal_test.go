package pspsim

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestJournal_TornLastLineIsCutOff(t *testing.T) {
	t.Parallel()
	b := setup(t)
	_, one := b.charge("key-1", "tok_visa")
	whole, err := os.ReadFile(b.journal)
	require.NoError(t, err)
	_, _ = b.charge("key-2", "tok_visa")
	both, err := os.ReadFile(b.journal)
	require.NoError(t, err)

	for _, length := range []int{len(whole) + 1, len(both) - 2, len(both) - 1} {
		path := filepath.Join(t.TempDir(), "journal")
		require.NoError(t, os.WriteFile(path, both[:length], 0o600))
		b := open(t, path)
		require.Equal(t, []entry{one.entry}, b.list("/v1/charges"))
		left, err := os.ReadFile(path)
		require.NoError(t, err)
		require.Equal(t, string(whole), string(left))

		_, again := b.charge("key-2", "tok_visa")
		require.Equal(t, 1, again.Attempts, "no client had been told of it")
		require.Len(t, b.crash().list("/v1/charges"), 2, "the next line is whole")
	}
}

func TestJournal_DamagedIsRefused(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "journal")
	require.NoError(t, os.WriteFile(path, []byte("{}\n{\"id\":\n{}\n"), 0o600))
	_, _, err := openLedger(path)
	require.ErrorContains(t, err, "line 2")
}

func TestJournal_IsUsedByOneProcess(t *testing.T) {
	t.Parallel()
	b := setup(t)
	_, _, err := openLedger(b.journal)
	require.ErrorContains(t, err, "is another pspsim using it?")
	require.NoError(t, b.sim.Close())
	again, _, err := openLedger(b.journal)
	require.NoError(t, err)
	require.NoError(t, again.journal.Close())
}

// BenchmarkSubmit is the provider's ceiling with many callers at once.
func BenchmarkSubmit(b *testing.B) {
	l, _, err := openLedger(filepath.Join(b.TempDir(), "journal"))
	require.NoError(b, err)
	p := params{Object: objectCharge, Amount: 4200, Currency: "USD", Reference: "order", Source: "tok_visa"}
	b.SetParallelism(32)
	b.RunParallel(func(pb *testing.PB) {
		for n := 0; pb.Next(); n++ {
			if _, err := l.submit(fmt.Sprintf("%p-%d", pb, n), p); err != nil {
				b.Error(err)
			}
		}
	})
	require.NoError(b, l.journal.Close())
}
