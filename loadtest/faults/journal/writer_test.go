package journal_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/loadtest/faults/journal"
)

func TestWriter_WritesALineOfJSONForEachAttempt(t *testing.T) {
	t.Parallel()
	var file bytes.Buffer
	w := journal.NewWriter(&file)
	w.Add(journal.Attempt{Invoke: time.Second, Return: 2 * time.Second, Client: 1, Account: "a", Key: "one", Operation: "order", Purpose: journal.Burst,
		Fingerprint: "f", Number: 2, Via: "nginx", Replica: "api-1", Status: 201, Replayed: true, Body: "b", Resource: "r"})
	w.Add(journal.Attempt{Key: "two", Status: 503, Code: "c", Error: "reset"})
	require.NoError(t, w.Close())

	lines := bytes.SplitAfter(file.Bytes(), []byte("\n"))
	require.Empty(t, lines[2])
	read := make([]journal.Attempt, 2)
	for i := range read {
		require.NoError(t, json.Unmarshal(lines[i], &read[i]))
	}
	require.Equal(t, w.Attempts(), read)
}

func TestWriter_TellsThatTheFileFailed(t *testing.T) {
	t.Parallel()
	w := journal.NewWriter(broken{})
	w.Add(journal.Attempt{Key: "one"})
	require.ErrorContains(t, w.Close(), "disk gone")
}

type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, errors.New("disk gone") }
