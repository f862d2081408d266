package tiers

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
)

// Charges is what the audit list of the provider at a base URL has of an order. It reads all pages.
func Charges(ctx context.Context, provider, order string) ([]Charge, error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	var all []Charge
	query := url.Values{"reference": {order}}
	for {
		page, next, err := chargesPage(ctx, provider+"/v1/charges?"+query.Encode())
		if err != nil {
			return nil, err
		}
		if all = append(all, page...); next == "" {
			return all, nil
		}
		query.Set("cursor", next)
	}
}

func chargesPage(ctx context.Context, url string) (page []Charge, next string, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return nil, "", fmt.Errorf("ask for the charges: %w", err)
	}
	req.Close = true // the next question comes in a second or never
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, "", fmt.Errorf("ask for the charges: %w", err)
	}
	defer func() { _ = resp.Body.Close() }()
	var list struct {
		Data       []Charge
		NextCursor string `json:"next_cursor"`
	}
	if resp.StatusCode != http.StatusOK {
		return nil, "", fmt.Errorf("ask for the charges: %s", resp.Status)
	}
	if err := json.NewDecoder(resp.Body).Decode(&list); err != nil {
		return nil, "", fmt.Errorf("read the charges: %w", err)
	}
	return list.Data, list.NextCursor, nil
}
