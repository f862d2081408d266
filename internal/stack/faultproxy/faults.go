package faultproxy

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/oncepay/oncepay/internal/stack/topology"
)

// controlTimeout bounds one call to the proxy's control port, which answers within milliseconds.
const controlTimeout = 5 * time.Second

// A toxic is something that Toxiproxy does to one direction of a connection (Toxiproxy's README,
// "Toxic fields").
type toxic struct {
	Name       string         `json:"name"`
	Type       string         `json:"type"`
	Stream     string         `json:"stream"`
	Toxicity   float32        `json:"toxicity"`
	Attributes map[string]any `json:"attributes"`
}

// Faults breaks and heals edges through the control port (host:port) of a proxy.
type Faults struct{ Control string }

// Partition cuts an edge; cutting it twice is fine.
func (f Faults) Partition(ctx context.Context, e topology.Edge) error {
	for _, direction := range []string{"upstream", "downstream"} {
		// A timeout of 0 swallows for as long as the toxic is there.
		if err := f.add(ctx, e, toxic{"partition-" + direction, "timeout", direction, 1, map[string]any{"timeout": 0}}); err != nil {
			return fmt.Errorf("partition %s: %w", e, err)
		}
	}
	return nil
}

// Slow delays every answer on an edge.
func (f Faults) Slow(ctx context.Context, e topology.Edge, delay time.Duration) error {
	err := f.add(ctx, e, toxic{"slow-" + delay.String(), "latency", "downstream", 1, map[string]any{"latency": delay.Milliseconds()}})
	if err != nil {
		return fmt.Errorf("slow %s: %w", e, err)
	}
	return nil
}

// Cut ends each connection of an edge after so many bytes of answers, wherever in an answer that
// is.
func (f Faults) Cut(ctx context.Context, e topology.Edge, bytes int) error {
	err := f.add(ctx, e, toxic{"cut-" + strconv.Itoa(bytes), "limit_data", "downstream", 1, map[string]any{"bytes": bytes}})
	if err != nil {
		return fmt.Errorf("cut %s: %w", e, err)
	}
	return nil
}

// Heal removes whatever was done to an edge. Connections that lived through a cut have lost bytes,
// so Toxiproxy closes them.
func (f Faults) Heal(ctx context.Context, e topology.Edge) error {
	var toxics []toxic
	if err := f.call(ctx, http.MethodGet, "/proxies/"+e.Name()+"/toxics", nil, &toxics); err != nil {
		return fmt.Errorf("heal %s: %w", e, err)
	}
	for _, t := range toxics {
		err := f.call(ctx, http.MethodDelete, "/proxies/"+e.Name()+"/toxics/"+t.Name, nil, nil, http.StatusNotFound)
		if err != nil {
			return fmt.Errorf("heal %s: %w", e, err)
		}
	}
	return nil
}

// HealAll removes every fault of every edge.
func (f Faults) HealAll(ctx context.Context) error {
	return f.call(ctx, http.MethodPost, "/reset", nil, nil)
}

// Active lists what is being done, such as "api-1 → redis: partition".
func (f Faults) Active(ctx context.Context) ([]string, error) {
	var proxies map[string]struct{ Toxics []toxic }
	if err := f.call(ctx, http.MethodGet, "/proxies", nil, &proxies); err != nil {
		return nil, fmt.Errorf("list faults: %w", err)
	}
	var list []string
	for _, e := range topology.Edges {
		for _, t := range proxies[e.Name()].Toxics {
			kind := strings.TrimSuffix(strings.TrimSuffix(t.Name, "-upstream"), "-downstream")
			list = append(list, e.String()+": "+kind)
		}
	}
	return slices.Compact(list), nil
}

func (f Faults) add(ctx context.Context, e topology.Edge, t toxic) error {
	return f.call(ctx, http.MethodPost, "/proxies/"+e.Name()+"/toxics", t, nil, http.StatusConflict)
}

// call asks the proxy; a status under 300 or one of also is success.
func (f Faults) call(ctx context.Context, method, path string, in, out any, also ...int) error {
	ctx, cancel := context.WithTimeout(ctx, controlTimeout)
	defer cancel()
	body, err := json.Marshal(in)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, method, "http://"+f.Control+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Close = true // one call per command: nothing to keep open
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode >= http.StatusMultipleChoices && !slices.Contains(also, resp.StatusCode) {
		text, _ := io.ReadAll(io.LimitReader(resp.Body, 1<<10))
		return fmt.Errorf("the proxy answers %s: %s", resp.Status, bytes.TrimSpace(text))
	}
	if out == nil {
		return nil
	}
	return json.NewDecoder(resp.Body).Decode(out)
}
