package books

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
)

// providerList reads the provider's own list of "charges" or "refunds", page by page.
func providerList(ctx context.Context, base, what string) (all []Charge, err error) {
	for query := (url.Values{}); ; {
		var page struct {
			Data       []Charge
			NextCursor string `json:"next_cursor"`
		}
		if err := ask(ctx, http.MethodGet, base+"/v1/"+what+"?"+query.Encode(), &page); err != nil {
			return nil, fmt.Errorf("list the provider's %s: %w", what, err)
		}
		if all = append(all, page.Data...); page.NextCursor == "" {
			return all, nil
		}
		query.Set("cursor", page.NextCursor)
	}
}

// ReplayEvents has the provider send the events of an order's charges and refunds once more, and
// fails unless each is accepted.
func ReplayEvents(ctx context.Context, base, order string) error {
	var sent struct {
		Data []struct {
			ID     string
			Status int
		}
	}
	if err := ask(ctx, http.MethodPost, base+"/v1/webhooks/replay?reference="+url.QueryEscape(order), &sent); err != nil {
		return fmt.Errorf("replay the events of order %s: %w", order, err)
	}
	if len(sent.Data) == 0 {
		return fmt.Errorf("replay the events of order %s: there is none", order)
	}
	for _, event := range sent.Data {
		if event.Status/100 != 2 {
			return fmt.Errorf("replay event %s of order %s: answered %d", event.ID, order, event.Status)
		}
	}
	return nil
}

// mails counts the mails that the server has, by the event in their Message-ID.
func mails(ctx context.Context, base string) (map[string]int, error) {
	var list struct {
		Mails []struct {
			MessageID string `json:"message_id"`
		}
	}
	if err := ask(ctx, http.MethodGet, base+"/v1/mails?limit=0", &list); err != nil {
		return nil, fmt.Errorf("list the mails: %w", err)
	}
	count := map[string]int{}
	for _, mail := range list.Mails {
		event, _, _ := strings.Cut(mail.MessageID, "@")
		count[event]++
	}
	return count, nil
}

// ask sends a request without a body, and decodes its answer.
func ask(ctx context.Context, method, url string, into any) error {
	request, err := http.NewRequestWithContext(ctx, method, url, http.NoBody)
	if err != nil {
		return err
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = answer.Body.Close() }()
	if answer.StatusCode/100 != 2 {
		return fmt.Errorf("answered %s", answer.Status)
	}
	return json.NewDecoder(answer.Body).Decode(into)
}
