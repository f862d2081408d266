package stack

import (
	"errors"
	"fmt"
	"slices"

	"github.com/oncepay/oncepay/internal/localserver"
)

// The services of a stack.
const (
	Proxy    = "proxy"
	Postgres = "postgres"
	Redis    = "redis"
	PSP      = "pspsim"
	API1     = "api-1"
	API2     = "api-2"
	Nginx    = "nginx"

	// With a standby only.
	PostgresStandby = "postgres-standby"

	// With Sentinel only.
	RedisReplica = "redis-replica"
	Sentinel1    = "sentinel-1"
	Sentinel2    = "sentinel-2"
	Sentinel3    = "sentinel-3"
)

// Services are the services of a stack with a single Redis, in the order in which they are listed.
var Services = []string{Proxy, Postgres, Redis, PSP, API1, API2, Nginx}

// Replicas are the services that answer the API behind nginx.
var Replicas = []string{API1, API2}

// basePorts are where the services listen when the port offset is 0; the proxy's is its own control
// port.
var basePorts = map[string]int{
	Proxy: 20000, Postgres: 55432, Redis: 56379, PSP: 8090, API1: 8081, API2: 8082, Nginx: 8080,
	PostgresStandby: 55433, RedisReplica: 56380, Sentinel1: 56381, Sentinel2: 56382, Sentinel3: 56383,
}

// ProxyAddr is where the fault proxy of a stack without a port offset is controlled.
var ProxyAddr = ports{}.addr(Proxy)

// opsPorts are where the replicas answer /livez, /readyz and /metrics.
var opsPorts = map[string]int{API1: 9081, API2: 9082}

// webhookSecret signs pspsim's events. Like the demo API keys it is no secret: a stack is for
// development.
const webhookSecret = "whsec_Zm9yIGRldmVsb3BtZW50IG9ubHksIGtub3duIHRvIGFsbA=="

// webhookURL is where pspsim sends its events: the public door, as a provider out in the world
// would.
func (p ports) webhookURL() string { return "http://" + p.addr(Nginx) + "/v1/webhooks/psp" }

// edge is a connection between services that goes through the proxy, so that it can be cut: from
// reaches to at port.
type edge struct {
	from, to string
	port     int
}

// edges are all of them. The last digits of a port tell where it leads.
var edges = []edge{
	{Nginx, API1, 20081},
	{Nginx, API2, 20082},
	{API1, Postgres, 21432},
	{API1, Redis, 21379},
	{API1, PSP, 21090},
	{API2, Postgres, 22432},
	{API2, Redis, 22379},
	{API2, PSP, 22090},
	{API1, PostgresStandby, 21433},
	{API2, PostgresStandby, 22433},
	{PostgresStandby, Postgres, 23432}, // the replication
}

// name is what the proxy calls the edge.
func (e edge) name() string { return e.from + "-to-" + e.to }

func (e edge) String() string { return e.from + " → " + e.to }

// joins reports whether the edge is between a and b, in either order.
func (e edge) joins(a, b string) bool {
	return (e.from == a && e.to == b) || (e.from == b && e.to == a)
}

// findEdge returns the edge between two services, named in either order.
func findEdge(a, b string) (edge, error) {
	for _, e := range edges {
		if e.joins(a, b) {
			return e, nil
		}
	}
	return edge{}, fmt.Errorf("%s and %s don't talk to each other; these do: %v", a, b, edges)
}

// maxOffset keeps the highest port below 65536.
const maxOffset = 65535 - 56383

// ports computes the addresses of a stack.
type ports struct {
	offset int
	direct bool // without the fault proxy
}

func (p ports) port(service string) int { return basePorts[service] + p.offset }

// addr is where a service listens.
func (p ports) addr(service string) string { return localserver.Loopback(p.port(service)) }

// ops is where a replica's operations port listens.
func (p ports) ops(replica string) string { return localserver.Loopback(opsPorts[replica] + p.offset) }

// via is where from reaches to: the proxy's port for that edge, or to itself.
func (p ports) via(from, to string) string {
	if p.direct {
		return p.addr(to)
	}
	i := slices.IndexFunc(edges, func(e edge) bool { return e.from == from && e.to == to })
	return localserver.Loopback(edges[i].port + p.offset)
}

// allPorts lists every port that a service listens on.
func (p ports) allPorts(service string) []int {
	list := []int{p.port(service)}
	if ops, ok := opsPorts[service]; ok {
		list = append(list, ops+p.offset)
	}
	if service == Proxy {
		for _, e := range edges {
			list = append(list, e.port+p.offset)
		}
	}
	return list
}

// checkPorts fails when a service could not listen on one of its ports, and names who does.
func checkPorts(service string, numbers []int) error {
	var errs []error
	for _, port := range numbers {
		if err := localserver.CheckPort(port); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", service, err))
		}
	}
	return errors.Join(errs...)
}
