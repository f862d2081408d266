package main

import (
	"bufio"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/internal/testenv"
)

// TestBench_EachServerReplaysAndEndsWithItsInput: only then what it costs can be compared.
func TestBench_EachServerReplaysAndEndsWithItsInput(t *testing.T) {
	t.Parallel()
	for _, system := range benchSystems {
		t.Run(system, func(t *testing.T) {
			t.Parallel()
			stdin, end := io.Pipe()
			printed, stdout := io.Pipe()
			redis, ended := testenv.Redis(t), make(chan error, 1)
			go func() { ended <- serveBench(t.Context(), []string{system, redis}, stdin, stdout) }()
			addr, err := bufio.NewReader(printed).ReadString('\n')
			require.NoError(t, err)
			url := "http://" + strings.TrimSpace(addr)
			first, again, other := post(t, url, "a", "k", "{}"), post(t, url, "a", "k", "{}"), post(t, url, "a", "l", "{}")
			require.Equal(t, 201, first.status, first.body)
			require.Equal(t, 201, again.status, again.body)
			require.Equal(t, system != "none", first.body == again.body)
			require.NotEqual(t, first.body, other.body)
			require.NoError(t, end.Close())
			require.NoError(t, <-ended)
		})
	}
}

func TestBench_NamesTheServersThatItKnows(t *testing.T) {
	t.Parallel()
	require.ErrorContains(t, serveBench(t.Context(), []string{"nobody", ""}, nil, nil), "setnx-autopipeline")
}
