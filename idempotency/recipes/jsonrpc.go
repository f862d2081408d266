package recipes

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strings"

	"github.com/oncepay/oncepay/idempotency"
)

// JSONRPC is for [idempotency.WithReplayHook] of a JSON-RPC endpoint, such as an MCP server: a
// replay has the id of its own request, also in an event stream whose messages are one line each.
// Leave the id out of the comparison by ExcludedFields: []string{"id"}. A batch is replayed with
// the first request's ids.
func JSONRPC(_ http.ResponseWriter, r *http.Request, kept *idempotency.Record) *idempotency.Error {
	var request struct {
		ID json.RawMessage `json:"id"`
	}
	if json.NewDecoder(r.Body).Decode(&request) != nil || request.ID == nil {
		return nil // no JSON-RPC
	}
	answer := &kept.Response
	if !strings.HasPrefix(answer.Header.Get("Content-Type"), "text/event-stream") {
		answer.Body = withID(answer.Body, request.ID)
		return nil
	}
	lines := bytes.Split(answer.Body, []byte("\n"))
	for i, line := range lines {
		if message, ok := bytes.CutPrefix(line, []byte("data:")); ok {
			lines[i] = append([]byte("data: "), withID(bytes.TrimSpace(message), request.ID)...)
		}
	}
	answer.Body = bytes.Join(lines, []byte("\n"))
	return nil
}

// withID returns a message with another id, if it is an answer. A request of the server has a
// method.
func withID(message []byte, id json.RawMessage) []byte {
	var answer map[string]json.RawMessage
	if json.Unmarshal(message, &answer) != nil || answer["id"] == nil || answer["method"] != nil {
		return message
	}
	answer["id"] = id
	changed, err := json.Marshal(answer)
	if err != nil {
		return message
	}
	return changed
}
