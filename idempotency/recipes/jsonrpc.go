package recipes

import (
	"encoding/json"
	"net/http"

	"github.com/oncepay/oncepay/idempotency"
)

// JSONRPC is for [idempotency.WithReplayHook] of a JSON-RPC endpoint, such as an MCP server: a
// replay has the id of its own request. Leave the id out of the comparison by
// ExcludedFields: []string{"id"}. A batch is replayed with the first request's ids.
func JSONRPC(_ http.ResponseWriter, r *http.Request, kept *idempotency.Record) *idempotency.Error {
	var request struct {
		ID json.RawMessage `json:"id"`
	}
	var answer map[string]json.RawMessage
	if json.NewDecoder(r.Body).Decode(&request) != nil || json.Unmarshal(kept.Response.Body, &answer) != nil {
		return nil // no JSON-RPC
	}
	if _, ok := answer["id"]; !ok || request.ID == nil {
		return nil
	}
	answer["id"] = request.ID
	if body, err := json.Marshal(answer); err == nil {
		kept.Response.Body = body
	}
	return nil
}
