package deployment

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/oncepay/oncepay/internal/localserver"
	"github.com/oncepay/oncepay/internal/stack/sentinel"
	"github.com/oncepay/oncepay/internal/stack/topology"
)

// Probe asks a service, over the address that everybody uses, whether it is ready.
func (d *Deployment) Probe(ctx context.Context, service string) error {
	switch service {
	case d.Primary():
		return localserver.EnsureDatabase(ctx, d.Addr(service))
	case d.StandbyServer():
		return localserver.PingPostgres(ctx, d.Addr(service))
	case topology.Redis, topology.RedisReplica:
		return sentinel.ProbeRedis(ctx, d.Topology, service)
	case topology.Sentinel1, topology.Sentinel2, topology.Sentinel3:
		return sentinel.Probe(ctx, d.Addr(service))
	case topology.Proxy:
		return ProbeURLs(ctx, "http://"+d.Addr(service)+"/version")
	case topology.PSP, topology.Console:
		return ProbeURLs(ctx, "http://"+d.Addr(service)+"/healthz")
	case topology.Mail:
		return ProbeURLs(ctx, "http://"+d.Ops(service)+"/healthz")
	case topology.API1, topology.API2:
		return ProbeURLs(ctx, "http://"+d.Ops(service)+"/readyz")
	default:
		return ProbeURLs(ctx, d.URL()+"/nginx/healthz") // its own, whatever the replicas do
	}
}

// ProbeDoor asks for the products through nginx: the road from the front door to PostgreSQL.
func (d *Deployment) ProbeDoor(ctx context.Context) error {
	return ProbeURLs(ctx, d.URL()+"/v1/products")
}

// AskReplica asks a replica whether it is ready, and which of its servers it cannot reach. It can
// be ready without some of them.
func (d *Deployment) AskReplica(ctx context.Context, name string) (missing string, err error) {
	code, text, err := get(ctx, "http://"+d.Ops(name)+"/readyz")
	if err != nil {
		return "", err
	}
	var answer struct {
		Status string
		Checks map[string]struct {
			OK    bool
			Error string
		}
	}
	if err := json.Unmarshal(text, &answer); err != nil {
		return "", fmt.Errorf("%s answers with status %d: %w", name, code, err)
	}
	for _, server := range slices.Sorted(maps.Keys(answer.Checks)) {
		if check := answer.Checks[server]; !check.OK {
			missing += ", without " + server + " (" + check.Error + ")"
		}
	}
	if code != http.StatusOK {
		err = errors.New(answer.Status)
	}
	return strings.TrimPrefix(missing, ", "), err
}

// ProbeURLs asks URLs once each, and expects status 200.
func ProbeURLs(ctx context.Context, urls ...string) error {
	for _, url := range urls {
		code, text, err := get(ctx, url)
		if err != nil {
			return err
		}
		if code != http.StatusOK {
			return fmt.Errorf("GET %s: status %d: %s", url, code, bytes.TrimSpace(text))
		}
	}
	return nil
}

// get sends the demo account's key along, which only the API looks at.
func get(ctx context.Context, url string) (code int, text []byte, err error) {
	ctx, cancel := context.WithTimeout(ctx, localserver.ProbeTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return 0, nil, err
	}
	req.Header.Set("Authorization", "Bearer sk_test_demo")
	req.Close = true // a probe leaves no connection open
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	text, err = io.ReadAll(io.LimitReader(resp.Body, 1<<10))
	return resp.StatusCode, text, err
}
