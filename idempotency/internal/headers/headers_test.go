package headers_test

import (
	"encoding/json"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/idempotency/internal/headers"
)

func TestMarshal_KeepsEveryByte(t *testing.T) {
	t.Parallel()
	all := make([]byte, 256)
	for i := range all {
		all[i] = byte(i)
	}
	for _, want := range []http.Header{
		{}, {"Empty": {}, "None": nil}, {"Location": {"/caf\xe9", "/café", "<&>"}, "X": {string(all)}},
	} {
		data := headers.Marshal(want)
		require.True(t, json.Valid(data), "%s", data)
		got, err := headers.Unmarshal(data)
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
}

func TestUnmarshal_RefusesWhatIsNoByte(t *testing.T) {
	t.Parallel()
	for _, data := range []string{`{"X":["\u0100"]}`, `{"X":"not a list"}`, `[`, ``} {
		_, err := headers.Unmarshal([]byte(data))
		require.Error(t, err, data)
	}
}

func TestSize_CountsNamesAndValues(t *testing.T) {
	t.Parallel()
	require.Zero(t, headers.Size(nil))
	require.Equal(t, len("A: 1\r\nA: 22\r\nBc: \r\n"), headers.Size(http.Header{"A": {"1", "22"}, "Bc": {""}, "None": {}}))
}

// FuzzUnmarshal compares it with encoding/json, on headers in ASCII.
func FuzzUnmarshal(f *testing.F) {
	for _, data := range []string{
		`{}`, `{"A":["x"]}`, `{"A":["x","y",""],"B":[", :"]}`, `{"A":[],"B":["y"]}`, `{"A":null}`, `{"A":["x", "y"]}`, `{"A":["\"]}`,
		`{"A":["x"]`, `{"A":["x"],}`, `{"A":["x""y"]}`, `{"A":["x"],"A":["y"]}`, `{"A":["]}`, `{"A":["x"]]}`, `{"":["x"]}`, `{"A":["x"]}}`,
	} {
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data string) {
		for i := range len(data) {
			if data[i] > 0x7f || data[i] == '\\' {
				return
			}
		}
		var want http.Header
		err := json.Unmarshal([]byte(data), &want)
		got, gotErr := headers.Unmarshal([]byte(data))
		require.Equal(t, err != nil, gotErr != nil, "%v %v", err, gotErr)
		if err == nil {
			require.Equal(t, want, got)
		}
	})
}
