package journal_test

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/loadtest/faults/journal"
)

// written is a journal of two attempts.
func written(t *testing.T) (string, []journal.Attempt) {
	t.Helper()
	var file bytes.Buffer
	w := journal.NewWriter(&file)
	w.Add(journal.Attempt{Invoke: time.Second, Return: 2 * time.Second, Client: 1, Account: "a", Key: "one", Operation: "order", Purpose: journal.Burst,
		Fingerprint: "f", Number: 2, Via: "nginx", Replica: "api-1", Status: 201, Replayed: true, Body: "b", Resource: "r"})
	w.Add(journal.Attempt{Key: "two", Status: 503, Code: "c", Error: "reset"})
	require.NoError(t, w.Close())
	return file.String(), w.Attempts()
}

func TestRead_ReturnsWhatWasWritten(t *testing.T) {
	t.Parallel()
	text, want := written(t)
	attempts, err := journal.Read(strings.NewReader(text))
	require.NoError(t, err)
	require.Equal(t, want, attempts)
	attempts, err = journal.Read(strings.NewReader(""))
	require.NoError(t, err)
	require.Empty(t, attempts)
}

// A campaign that was killed leaves the beginning of a line, wherever it was cut.
func TestRead_ReportsATornLastLine(t *testing.T) {
	t.Parallel()
	text, want := written(t)
	second := strings.Index(text, "\n") + 1
	for end := second + 1; end < len(text)-1; end++ {
		attempts, err := journal.Read(strings.NewReader(text[:end]))
		require.ErrorIs(t, err, io.ErrUnexpectedEOF)
		require.ErrorContains(t, err, "line 2")
		require.Equal(t, want[:1], attempts)
	}
}

func TestRead_TakesDamageForAnError(t *testing.T) {
	t.Parallel()
	text, want := written(t)
	attempts, err := journal.Read(strings.NewReader(text + "{\"invoke\":\n" + text))
	require.ErrorContains(t, err, "line 3")
	require.NotErrorIs(t, err, io.ErrUnexpectedEOF)
	require.Equal(t, want, attempts)

	_, err = journal.Read(io.MultiReader(strings.NewReader(text), broken{}))
	require.ErrorContains(t, err, "disk gone")
}

type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, errors.New("disk gone") }
