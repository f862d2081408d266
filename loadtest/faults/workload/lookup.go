package workload

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/oncepay/oncepay/loadtest/faults/journal"
)

// LookUp asks once what became of the request with a key.
func (w *Wire) LookUp(ctx context.Context, r Request, via string) {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	a := journal.Attempt{
		Client: r.Client, Account: r.Account, Key: r.Key, Operation: "look-up", Purpose: r.Purpose, Number: 1, Via: via,
		LookUp: &journal.LookUp{}, Invoke: time.Since(w.Began),
	}
	if err := w.lookUp(ctx, &a); err != nil {
		a.Error = err.Error()
	}
	a.Return = time.Since(w.Began)
	w.Journal.Add(a)
}

func (w *Wire) lookUp(ctx context.Context, a *journal.Attempt) error {
	address := w.Endpoints[a.Via] + "/v1/idempotency-keys/" + url.PathEscape(a.Key)
	q, err := http.NewRequestWithContext(ctx, http.MethodGet, address, http.NoBody)
	if err != nil {
		return err
	}
	q.Header.Set("Authorization", "Bearer "+a.Account)
	answer, err := w.pool.RoundTrip(q)
	if err != nil {
		return err
	}
	defer func() { _ = answer.Body.Close() }()
	enterHeader(a, answer)
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		return err
	}
	var state struct {
		State  string `json:"state"`
		Status int    `json:"response_status"`
	}
	_ = json.Unmarshal(body, &state) // a gateway's page has neither
	a.LookUp.State, a.LookUp.Status = state.State, state.Status
	return nil
}
