package faultproxy

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	remote "github.com/Shopify/toxiproxy/v2/client"
)

// Faults breaks and heals hops through the control port of a proxy.
type Faults struct{ control *remote.Client }

// At returns the faults of the proxy with this control port (host:port).
func At(control string) Faults { return Faults{remote.NewClient(control)} }

// toxics are what a fault adds to a hop (Toxiproxy's README, "Toxic fields").
func toxics(fault, parameter string) ([]remote.Toxic, error) {
	switch fault {
	case "partition": // a timeout of 0 swallows for as long as the toxic is there
		swallow := remote.Attributes{"timeout": 0}
		return []remote.Toxic{{Name: "partition-upstream", Type: "timeout", Stream: "upstream", Attributes: swallow},
			{Name: "partition-downstream", Type: "timeout", Stream: "downstream", Attributes: swallow}}, nil
	case "slow": // every answer
		delay, err := time.ParseDuration(parameter)
		return []remote.Toxic{{Name: "slow-" + parameter, Type: "latency", Stream: "downstream",
			Attributes: remote.Attributes{"latency": delay.Milliseconds()}}}, err
	case "cut": // each connection after so many bytes of answers, wherever in an answer that is
		bytes, err := strconv.Atoi(parameter)
		return []remote.Toxic{{Name: "cut-" + parameter, Type: "limit_data", Stream: "downstream", Attributes: remote.Attributes{"bytes": bytes}}}, err
	}
	return nil, fmt.Errorf("unknown fault %q", fault)
}

// Break does something to a hop: partition, slow (by a delay such as 100ms) or cut (after so many
// bytes). Doing it twice is fine.
func (f Faults) Break(hop, fault, parameter string) error {
	add, err := toxics(fault, parameter)
	if err != nil {
		return err
	}
	proxy, err := f.control.Proxy(hop)
	if err != nil {
		return err
	}
	for _, t := range add {
		_, err := proxy.AddToxic(t.Name, t.Type, t.Stream, 1, t.Attributes)
		if refused, ok := errors.AsType[*remote.ApiError](err); err != nil && (!ok || refused.Status != http.StatusConflict) {
			return err
		}
	}
	return nil
}

// Heal removes whatever was done to a hop. Connections that lived through a cut have lost bytes, so
// Toxiproxy closes them.
func (f Faults) Heal(hop string) error {
	proxy, err := f.control.Proxy(hop)
	if err != nil {
		return err
	}
	for _, toxic := range proxy.ActiveToxics {
		err = errors.Join(err, proxy.RemoveToxic(toxic.Name))
	}
	return err
}

// HealAll removes every fault of every hop.
func (f Faults) HealAll() error { return f.control.ResetState() }

// Active lists what is being done to each hop, such as "partition" or "slow-100ms".
func (f Faults) Active() (of map[string][]string, err error) {
	proxies, err := f.control.Proxies()
	of = map[string][]string{}
	for hop, proxy := range proxies {
		for _, toxic := range proxy.ActiveToxics {
			fault := strings.TrimSuffix(strings.TrimSuffix(toxic.Name, "-upstream"), "-downstream")
			of[hop] = append(of[hop], fault)
		}
		of[hop] = slices.Compact(of[hop])
	}
	return of, err
}
