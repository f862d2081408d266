package tiers

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
)

// Mail is one that the mail server has.
type Mail struct {
	MessageID string `json:"message_id"`
	To        string `json:"to"`
	Subject   string `json:"subject"`
	Text      string `json:"text"`
}

// NewestMails lists the last few mails, the newest first, of the mail sink at a base URL.
func NewestMails(ctx context.Context, sink string) ([]Mail, error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, sink+"/v1/mails?limit=6", http.NoBody)
	if err != nil {
		return nil, fmt.Errorf("ask for the mails: %w", err)
	}
	req.Close = true
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, fmt.Errorf("ask for the mails: %w", err)
	}
	defer func() { _ = resp.Body.Close() }()
	var list struct{ Mails []Mail }
	if err := json.NewDecoder(resp.Body).Decode(&list); err != nil {
		return nil, fmt.Errorf("ask for the mails: %w", err)
	}
	slices.Reverse(list.Mails)
	return list.Mails, nil
}
