package tiers

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
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
	var list struct{ Mails []Mail }
	err := get(ctx, sink+"/v1/mails?limit=6", &list)
	slices.Reverse(list.Mails)
	return list.Mails, err
}

// Charges is what the audit list of the provider at a base URL has of an order.
func Charges(ctx context.Context, provider, order string) ([]Charge, error) {
	var list struct{ Data []Charge }
	err := get(ctx, provider+"/v1/charges?reference="+url.QueryEscape(order), &list)
	return list.Data, err
}

// get reads JSON.
func get(ctx context.Context, url string, into any) error {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return err
	}
	req.Close = true // the next question comes in a second or never
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("GET %s: %s", url, resp.Status)
	}
	return json.NewDecoder(resp.Body).Decode(into)
}
