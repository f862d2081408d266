package deployment

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"

	"github.com/oncepay/oncepay/internal/localserver"
	"github.com/oncepay/oncepay/internal/stack/sentinel"
	"github.com/oncepay/oncepay/internal/stack/topology"
)

// Probe asks a service, over the address that everybody uses, whether it is ready.
func (d *Deployment) Probe(ctx context.Context, service string) error {
	ctx, cancel := context.WithTimeout(ctx, localserver.ProbeTimeout)
	defer cancel()
	switch service {
	case topology.Proxy:
		return getOK(ctx, "http://"+d.Addr(topology.Proxy)+"/version")
	case d.Primary():
		return localserver.EnsureDatabase(ctx, d.Addr(service))
	case d.StandbyServer():
		return localserver.PingPostgres(ctx, d.Addr(service))
	case topology.Redis, topology.RedisReplica:
		return sentinel.ProbeRedis(ctx, d.Topology, service)
	case topology.Sentinel1, topology.Sentinel2, topology.Sentinel3:
		return sentinel.Probe(ctx, d.Addr(service))
	case topology.PSP:
		return getOK(ctx, "http://"+d.Addr(topology.PSP)+"/healthz")
	case topology.Console:
		return getOK(ctx, "http://"+d.Addr(topology.Console)+"/healthz")
	case topology.API1, topology.API2:
		return getOK(ctx, "http://"+d.Ops(service)+"/readyz")
	case topology.Nginx:
		return getOK(ctx, d.URL()+"/nginx/healthz") // its own, whatever the replicas do
	}
	return fmt.Errorf("unknown service %q", service)
}

// ProbeDoor asks for the products through nginx: the road from the front door to PostgreSQL.
func (d *Deployment) ProbeDoor(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, localserver.ProbeTimeout)
	defer cancel()
	return getOK(ctx, d.URL()+"/v1/products")
}

// getOK expects status 200. It sends the demo account's key along, which only the API looks at.
func getOK(ctx context.Context, url string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer sk_test_demo")
	req.Close = true // a probe leaves no connection open
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(io.LimitReader(resp.Body, 1<<10))
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("GET %s: status %d: %s", url, resp.StatusCode, bytes.TrimSpace(text))
	}
	return err
}

// ProbeURLs asks URLs once each, for the healthchecks of containers that have no curl.
func ProbeURLs(ctx context.Context, urls ...string) error {
	ctx, cancel := context.WithTimeout(ctx, localserver.ProbeTimeout)
	defer cancel()
	for _, url := range urls {
		if err := getOK(ctx, url); err != nil {
			return err
		}
	}
	return nil
}
