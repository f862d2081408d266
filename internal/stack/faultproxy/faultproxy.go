// Package faultproxy runs the proxy between the services of a stack, and tells it what to break.
//
// Every connection between our own services goes through a Toxiproxy, so that each one can be cut
// by itself, in the same way on both drivers. A cut swallows what either side sends, on new
// connections too: no connection is refused, as with a switch that has failed. One thing differs
// from a real one: when a side closes, the other side sees it.
//
// The hop costs some 15 µs per round trip on loopback (BenchmarkProxyHop: 31 µs instead of 17):
// 0.03 ms of a replay, 0.1 ms of a card payment.
package faultproxy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	toxiproxy "github.com/Shopify/toxiproxy/v2"
	remote "github.com/Shopify/toxiproxy/v2/client"
	"github.com/rs/zerolog"
)

// Hop is a connection that goes through the proxy: what it is called, where the proxy listens for
// it, and where it leads to (host:port).
type Hop struct{ Name, Listen, Upstream string }

// Serve runs the proxies of all hops, and Toxiproxy's HTTP API at control (host:port), until ctx
// ends; then the process has to end, too. Tools such as toxiproxy-cli work on that API. It returns
// an error when a port is taken.
func Serve(ctx context.Context, control string, hops []Hop, log io.Writer) error {
	server := newToxiproxy(log)
	defer func() { _ = server.Collection.Clear() }()
	for _, h := range hops {
		if err := server.Collection.Add(toxiproxy.NewProxy(server, h.Name, h.Listen, h.Upstream), true); err != nil {
			return fmt.Errorf("listen for %s: %w", h.Name, err)
		}
	}
	context.AfterFunc(ctx, func() { _ = server.Shutdown() })
	if err := server.Listen(control); err != nil {
		return fmt.Errorf("serve the control port: %w", err)
	}
	return nil
}

func newToxiproxy(log io.Writer) *toxiproxy.ApiServer {
	logger := zerolog.New(log).Level(zerolog.WarnLevel).With().Timestamp().Logger()
	return toxiproxy.NewServer(toxiproxy.NewMetricsContainer(nil), logger)
}

// Faults breaks and heals hops through the control port of a proxy.
type Faults struct{ control *remote.Client }

// At returns the faults of the proxy with this control port (host:port).
func At(control string) Faults { return Faults{remote.NewClient(control)} }

// Break does something to a hop: partition, slow (by a delay such as 100ms) or cut (after so many
// bytes of answers, wherever in an answer that is). Doing it twice is fine. Each is made of toxics
// (Toxiproxy's README, "Toxic fields").
func (f Faults) Break(hop, fault, parameter string) error {
	proxy, err := f.control.Proxy(hop)
	if err != nil {
		return err
	}
	add := func(name, kind, stream string, attributes remote.Attributes) error {
		_, err := proxy.AddToxic(name, kind, stream, 1, attributes)
		if refused, ok := errors.AsType[*remote.ApiError](err); ok && refused.Status == http.StatusConflict {
			return nil // it is there
		}
		return err
	}
	switch fault {
	case "partition": // a timeout of 0 swallows for as long as the toxic is there
		swallow := remote.Attributes{"timeout": 0}
		return errors.Join(add("partition-upstream", "timeout", "upstream", swallow),
			add("partition-downstream", "timeout", "downstream", swallow))
	case "slow":
		delay, err := time.ParseDuration(parameter)
		if err != nil {
			return err
		}
		return add("slow-"+parameter, "latency", "downstream", remote.Attributes{"latency": delay.Milliseconds()})
	case "cut":
		bytes, err := strconv.Atoi(parameter)
		if err != nil {
			return err
		}
		return add("cut-"+parameter, "limit_data", "downstream", remote.Attributes{"bytes": bytes})
	}
	return fmt.Errorf("unknown fault %q", fault)
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
