package stack

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
)

// probe asks a service, over the address that everybody uses, whether it is ready.
func (s *Stack) probe(ctx context.Context, name string) error {
	switch name {
	case s.Primary(), s.StandbyServer():
		return localserver.PingPostgres(ctx, s.Addr(name))
	case Redis, RedisReplica:
		return s.probeRedis(ctx, name)
	case Sentinel1, Sentinel2, Sentinel3:
		return probeSentinel(ctx, s.Addr(name))
	}
	return ProbeURL(ctx, s.healthURL(name))
}

func (s *Stack) healthURL(name string) string {
	return "http://" + s.Ops(name) + serviceOf(name).health
}

// askReplica asks a replica whether it is ready, and which of its servers it cannot reach. It can
// be ready without some of them.
func (s *Stack) askReplica(ctx context.Context, name string) (missing string, err error) {
	code, text, err := get(ctx, s.healthURL(name))
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

// ProbeURL asks a URL once, and expects status 200.
func ProbeURL(ctx context.Context, url string) error {
	code, text, err := get(ctx, url)
	if err == nil && code != http.StatusOK {
		err = fmt.Errorf("GET %s: status %d: %s", url, code, bytes.TrimSpace(text))
	}
	return err
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
