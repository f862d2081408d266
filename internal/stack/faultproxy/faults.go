package faultproxy

import (
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	remote "github.com/Shopify/toxiproxy/v2/client"

	"github.com/oncepay/oncepay/internal/stack/topology"
)

// Faults breaks and heals edges through the control port of a proxy.
type Faults struct{ control *remote.Client }

// Of returns the faults of a stack.
func Of(t *topology.Topology) Faults { return Faults{remote.NewClient(t.Addr(topology.Proxy))} }

// Partition cuts an edge; cutting it twice is fine.
func (f Faults) Partition(e topology.Edge) error {
	for _, direction := range []string{"upstream", "downstream"} {
		// A timeout of 0 swallows for as long as the toxic is there.
		if err := f.add(e, "partition-"+direction, "timeout", direction, remote.Attributes{"timeout": 0}); err != nil {
			return err
		}
	}
	return nil
}

// Slow delays every answer on an edge.
func (f Faults) Slow(e topology.Edge, delay time.Duration) error {
	return f.add(e, "slow-"+delay.String(), "latency", "downstream", remote.Attributes{"latency": delay.Milliseconds()})
}

// Cut ends each connection of an edge after so many bytes of answers, wherever in an answer that
// is.
func (f Faults) Cut(e topology.Edge, bytes int) error {
	return f.add(e, "cut-"+strconv.Itoa(bytes), "limit_data", "downstream", remote.Attributes{"bytes": bytes})
}

// Heal removes whatever was done to an edge. Connections that lived through a cut have lost bytes,
// so Toxiproxy closes them.
func (f Faults) Heal(e topology.Edge) error {
	proxy, err := f.control.Proxy(e.Name())
	if err != nil {
		return err
	}
	for _, toxic := range proxy.ActiveToxics {
		err = errors.Join(err, proxy.RemoveToxic(toxic.Name))
	}
	return err
}

// HealAll removes every fault of every edge.
func (f Faults) HealAll() error { return f.control.ResetState() }

// Active lists what is being done, such as "api-1 → redis: partition".
func (f Faults) Active() (list []string, err error) {
	proxies, err := f.control.Proxies()
	for _, e := range topology.Edges {
		if proxy := proxies[e.Name()]; proxy != nil {
			for _, toxic := range proxy.ActiveToxics {
				kind := strings.TrimSuffix(strings.TrimSuffix(toxic.Name, "-upstream"), "-downstream")
				list = append(list, e.String()+": "+kind)
			}
		}
	}
	return slices.Compact(list), err
}

// add does something to one direction of an edge (Toxiproxy's README, "Toxic fields"), unless it is
// done already.
func (f Faults) add(e topology.Edge, name, kind, stream string, attributes remote.Attributes) error {
	proxy, err := f.control.Proxy(e.Name())
	if err == nil {
		_, err = proxy.AddToxic(name, kind, stream, 1, attributes)
	}
	if refused, ok := errors.AsType[*remote.ApiError](err); ok && refused.Status == http.StatusConflict {
		return nil
	}
	return err
}
