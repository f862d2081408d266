package stack

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/oncepay/oncepay/internal/localserver"
)

const (
	// pollInterval is how often a service is asked while we wait for it: short against the second
	// or so that a start takes.
	pollInterval = 20 * time.Millisecond

	// probeTimeout bounds one question to a service.
	probeTimeout = 2 * time.Second
)

// probe asks a service, over the address that everybody uses, whether it is ready.
func (s *Stack) probe(ctx context.Context, service string) error {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	switch service {
	case Proxy:
		return getOK(ctx, "http://"+s.addr(Proxy)+"/version")
	case Postgres, PostgresStandby:
		return localserver.EnsureDatabase(ctx, s.addr(Postgres))
	case Redis, RedisReplica:
		return s.probeRedis(ctx, service)
	case Sentinel1, Sentinel2, Sentinel3:
		return probeSentinel(ctx, s.addr(service))
	case PSP:
		return getOK(ctx, "http://"+s.addr(PSP)+"/healthz")
	case API1, API2:
		return getOK(ctx, "http://"+s.ops(service)+"/readyz")
	case Nginx:
		return getOK(ctx, s.URL()+"/nginx/healthz") // its own, whatever the replicas do
	}
	return fmt.Errorf("unknown service %q", service)
}

// probeDoor asks for the products through nginx: the road from the front door to PostgreSQL.
func (s *Stack) probeDoor(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	return getOK(ctx, s.URL()+"/v1/products")
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

// Probe asks URLs once each, for the healthchecks of containers that have no curl.
func Probe(ctx context.Context, urls ...string) error {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	for _, url := range urls {
		if err := getOK(ctx, url); err != nil {
			return err
		}
	}
	return nil
}
