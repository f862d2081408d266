package books

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
)

// ProviderList reads the provider's own list of "charges" or "refunds", page by page.
func ProviderList(ctx context.Context, client *http.Client, base, what string) ([]Charge, error) {
	var all []Charge
	query := url.Values{}
	for {
		page, next, err := readPage(ctx, client, base+"/v1/"+what+"?"+query.Encode())
		if err != nil {
			return nil, fmt.Errorf("list the provider's %s: %w", what, err)
		}
		if all = append(all, page...); next == "" {
			return all, nil
		}
		query.Set("cursor", next)
	}
}

func readPage(ctx context.Context, client *http.Client, url string) (page []Charge, next string, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return nil, "", err
	}
	answer, err := client.Do(request)
	if err != nil {
		return nil, "", err
	}
	defer func() { _ = answer.Body.Close() }()
	if answer.StatusCode != http.StatusOK {
		return nil, "", fmt.Errorf("answered %s", answer.Status)
	}
	var list struct {
		Data       []Charge
		NextCursor string `json:"next_cursor"`
	}
	err = json.NewDecoder(answer.Body).Decode(&list)
	return list.Data, list.NextCursor, err
}

// ReplayEvents has the provider send the events of an order's charges and refunds once more, and
// fails unless each is accepted.
func ReplayEvents(ctx context.Context, base, order string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, base+"/v1/webhooks/replay?reference="+url.QueryEscape(order), http.NoBody)
	if err != nil {
		return fmt.Errorf("replay the events of order %s: %w", order, err)
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return fmt.Errorf("replay the events of order %s: %w", order, err)
	}
	defer func() { _ = answer.Body.Close() }()
	var sent struct {
		Data []struct {
			ID     string
			Status int
		}
	}
	if err := json.NewDecoder(answer.Body).Decode(&sent); err != nil {
		return fmt.Errorf("replay the events of order %s: read the answer %s: %w", order, answer.Status, err)
	}
	if len(sent.Data) == 0 {
		return fmt.Errorf("replay the events of order %s: answered %s, and no event", order, answer.Status)
	}
	for _, event := range sent.Data {
		if event.Status/100 != 2 {
			return fmt.Errorf("replay event %s of order %s: answered %d", event.ID, order, event.Status)
		}
	}
	return nil
}
