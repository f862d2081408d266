package recipes_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/idempotency"
	"github.com/oncepay/oncepay/idempotency/memstore"
	"github.com/oncepay/oncepay/idempotency/recipes"
)

func TestJSONRPC_ReplaysWithTheIDOfTheRequest(t *testing.T) {
	t.Parallel()
	ran := 0
	policy := idempotency.Policy{Required: true, ExcludedFields: []string{"id"}}
	keys := idempotency.New(memstore.New(), idempotency.Always(policy), idempotency.WithSharedScope(),
		idempotency.WithReplayHook(recipes.JSONRPC))
	handler := keys.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ran++
		var call struct{ ID json.RawMessage }
		_ = json.NewDecoder(r.Body).Decode(&call)
		_ = json.NewEncoder(w).Encode(map[string]any{"jsonrpc": "2.0", "id": call.ID, "result": map[string]int{"id": ran}})
	}))
	send := func(body string) *httptest.ResponseRecorder {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/rpc", strings.NewReader(body))
		r.Header.Set(idempotency.HeaderKey, "key")
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		return w
	}
	for _, id := range []string{"1", "2", `"three"`, "null"} {
		answer := send(`{"jsonrpc":"2.0","id":` + id + `,"method":"pay","params":{"id":7}}`)
		require.JSONEq(t, `{"jsonrpc":"2.0","id":`+id+`,"result":{"id":1}}`, answer.Body.String())
	}
	require.Equal(t, http.StatusUnprocessableEntity, send(`{"jsonrpc":"2.0","id":1,"method":"pay","params":{"id":8}}`).Code)
	require.Equal(t, 1, ran)
}

// TestJSONRPC_ReplaysAnEventStreamWithTheIDOfTheRequest, as MCP's servers answer. Notifications and
// requests of the server stay as they are.
func TestJSONRPC_ReplaysAnEventStreamWithTheIDOfTheRequest(t *testing.T) {
	t.Parallel()
	const asks = "id: 1\ndata: {\"method\":\"ping\",\"id\":1}\n\ndata: {\"method\":\"progress\"}\n\nevent: message\ndata: "
	policy := idempotency.Policy{ExcludedFields: []string{"id"}}
	keys := idempotency.New(memstore.New(), idempotency.Always(policy), idempotency.WithSharedScope(),
		idempotency.WithReplayHook(recipes.JSONRPC))
	handler := keys.Handler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = w.Write([]byte(asks + `{"id":1,"result":"a"}` + "\n\n"))
	}))
	for _, id := range []string{"1", "2", `"three"`} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/mcp", strings.NewReader(`{"method":"pay","id":`+id+`}`))
		r.Header.Set(idempotency.HeaderKey, "key")
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		require.Equal(t, asks+`{"id":`+id+`,"result":"a"}`+"\n\n", w.Body.String())
	}
}
