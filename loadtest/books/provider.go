package books

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/oncepay/oncepay/loadtest/shop"
)

// providerList reads the provider's own list of "charges" or "refunds".
func providerList(ctx context.Context, provider shop.API, what string) ([]Charge, error) {
	var list struct{ Data []Charge }
	if err := provider.Get(ctx, "/"+what, &list); err != nil {
		return nil, fmt.Errorf("list the provider's %s: %w", what, err)
	}
	return list.Data, nil
}

// ReplayEvents has the provider send the events of an order's charges and refunds once more, and
// fails unless there are some and each is accepted.
func ReplayEvents(ctx context.Context, base, order string) error {
	var sent struct{ Data []struct{ Status int } }
	err := shop.Ask(ctx, http.MethodPost, base+"/v1/webhooks/replay?reference="+url.QueryEscape(order), "", &sent)
	refused := func(event struct{ Status int }) bool { return event.Status/100 != 2 }
	if err == nil && (len(sent.Data) == 0 || slices.ContainsFunc(sent.Data, refused)) {
		err = fmt.Errorf("answered %v", sent.Data)
	}
	if err != nil {
		return fmt.Errorf("replay the events of order %s: %w", order, err)
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
	if err := shop.Ask(ctx, http.MethodGet, base+"/v1/mails?limit=0", "", &list); err != nil {
		return nil, fmt.Errorf("list the mails: %w", err)
	}
	count := map[string]int{}
	for _, mail := range list.Mails {
		event, _, _ := strings.Cut(mail.MessageID, "@")
		count[event]++
	}
	return count, nil
}
