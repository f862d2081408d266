package topology

import (
	"maps"
	"slices"

	"github.com/oncepay/oncepay/internal/localserver"
)

// The ports of a stack without an offset. docker-compose.yml and nginx.conf repeat some of them, so
// that they can be used without `stack`; a test compares them.
var (
	// basePorts are where the services listen; the proxy's is its own control port.
	basePorts = map[string]int{
		Nginx: 8080, API1: 8081, API2: 8082, PSP: 8090, Mail: 1025, Console: 8088,
		Proxy:    20000,
		Postgres: 55432, PostgresStandby: 55433,
		Redis: 56379, RedisReplica: 56380, Sentinel1: 56381, Sentinel2: 56382, Sentinel3: 56383,
	}

	// opsPorts are second ports: where the replicas answer /livez, /readyz and /metrics, and where
	// the mails are listed.
	opsPorts = map[string]int{API1: 9081, API2: 9082, Mail: 8025}
)

// MaxOffset keeps the highest port below 65536.
var MaxOffset = 65535 - slices.Max(slices.Collect(maps.Values(basePorts)))

// Port is where a service listens.
func (t *Topology) Port(service string) int { return basePorts[service] + t.Offset }

// OpsPort is a service's second port, or 0 if it has none.
func (t *Topology) OpsPort(service string) int {
	if port, ok := opsPorts[service]; ok {
		return port + t.Offset
	}
	return 0
}

// Ports lists every port that a service listens on.
func (t *Topology) Ports(service string) []int {
	list := []int{t.Port(service)}
	if ops := t.OpsPort(service); ops != 0 {
		list = append(list, ops)
	}
	if service == Proxy {
		for _, e := range Edges {
			list = append(list, e.port+t.Offset)
		}
	}
	return list
}

// Addr is where a service listens: host:port on loopback.
func (t *Topology) Addr(service string) string { return localserver.Loopback(t.Port(service)) }

// Ops is the address of a service's second port.
func (t *Topology) Ops(service string) string { return localserver.Loopback(t.OpsPort(service)) }

// URL is the public address, nginx's.
func (t *Topology) URL() string { return "http://" + t.Addr(Nginx) }

// Via is where from reaches to: the proxy's port for that edge, or to itself.
func (t *Topology) Via(from, to string) string {
	if t.Direct {
		return t.Addr(to)
	}
	i := slices.IndexFunc(Edges, func(e Edge) bool { return e.From == from && e.To == to })
	return localserver.Loopback(Edges[i].port + t.Offset)
}

// PostgresPrimary is the address of the PostgreSQL that takes writes.
func (t *Topology) PostgresPrimary() string { return t.Addr(t.Primary()) }
