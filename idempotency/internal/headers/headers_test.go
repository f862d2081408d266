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
