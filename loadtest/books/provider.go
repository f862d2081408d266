package books

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
)

// ProviderList reads the provider's own list of "charges" or "refunds".
func ProviderList(ctx context.Context, client *http.Client, url, what string) ([]Charge, error) {
	list, err := readList(ctx, client, url+"/v1/"+what)
	if err != nil {
		return nil, fmt.Errorf("list the provider's %s: %w", what, err)
	}
	return list, nil
}

func readList(ctx context.Context, client *http.Client, url string) ([]Charge, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return nil, err
	}
	answer, err := client.Do(request)
	if err != nil {
		return nil, err
	}
	defer func() { _ = answer.Body.Close() }()
	if answer.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("answered %s", answer.Status)
	}
	var list struct{ Data []Charge }
	err = json.NewDecoder(answer.Body).Decode(&list)
	return list.Data, err
}
