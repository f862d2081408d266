package stack

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/oncepay/oncepay/internal/localserver"
)

// The services of a stack. The standby, the pooler, the replica of Redis with the sentinels, and
// the console are there if they are asked for.
const (
	Proxy           = "proxy"
	Postgres        = "postgres"
	PostgresStandby = "postgres-standby"
	PgBouncer       = "pgbouncer"
	Redis           = "redis"
	RedisReplica    = "redis-replica"
	Sentinel1       = "sentinel-1"
	Sentinel2       = "sentinel-2"
	Sentinel3       = "sentinel-3"
	PSP             = "pspsim"
	Mail            = "mail"
	API1            = "api-1"
	API2            = "api-2"
	Nginx           = "nginx"
	Console         = "console"
)

var (
	// Replicas are the services that answer the API behind nginx.
	Replicas = []string{API1, API2}

	sentinels    = []string{Sentinel1, Sentinel2, Sentinel3}
	redisPair    = []string{Redis, RedisReplica}       // Sentinel appoints one of them
	postgresPair = []string{Postgres, PostgresStandby} // one of them is the primary
)

// The kinds of Redis and PostgreSQL that a stack may have.
const (
	Single = "single"
	// Sentinel is a Redis primary with a replica, which three sentinels appoint when it is gone.
	Sentinel = "sentinel"
	// Standby is a PostgreSQL primary and a hot standby that follows it asynchronously: a failover
	// loses the commits that had not arrived.
	Standby = "standby"
	// SyncStandby answers a commit only when the standby has applied it: a failover loses nothing
	// that was answered, but without the standby nothing is committed.
	SyncStandby = "sync-standby"
)

// service is a line of the table of services.
type service struct {
	name   string
	port   int                  // the proxy's is its own control port
	ops    int                  // a second port: for /livez, /readyz and /metrics, or the list of mails; 0: none
	health string               // a path that answers 200 when it is ready, at the second port if there is one
	isIn   func(*Topology) bool // nil: it is in every stack
}

// services are in the order in which they are listed, with their ports without an offset.
// docker-compose.yml and nginx.conf repeat some of them; a test compares them.
var services = []service{
	{Proxy, 20000, 0, "/version", func(t *Topology) bool { return !t.Direct }},
	{Postgres, 55432, 0, "", nil},
	{PostgresStandby, 55433, 0, "", (*Topology).HasStandby},
	{PgBouncer, 55434, 0, "", (*Topology).IsPooled},
	{Redis, 56379, 0, "", nil},
	{RedisReplica, 56380, 0, "", (*Topology).IsReplicated},
	{Sentinel1, 56381, 0, "", (*Topology).IsReplicated},
	{Sentinel2, 56382, 0, "", (*Topology).IsReplicated},
	{Sentinel3, 56383, 0, "", (*Topology).IsReplicated},
	{PSP, 8090, 0, "/healthz", nil},
	{Mail, 1025, 8025, "/healthz", nil},
	{API1, 8081, 9081, "/readyz", nil},
	{API2, 8082, 9082, "/readyz", nil},
	{Nginx, 8080, 0, "/nginx/healthz", nil}, // its own, whatever the replicas do
	{Console, 8088, 0, "/healthz", func(t *Topology) bool { return t.Console }},
}

// maxOffset keeps the highest port below 65536.
const maxOffset = 65535 - 56383

func serviceOf(name string) service {
	return services[slices.IndexFunc(services, func(s service) bool { return s.name == name })]
}

// Topology is which services a stack has, and where they listen. Its JSON form is part of the
// stack's state.
type Topology struct {
	Offset   int    `json:"port_offset"`        // is added to every port
	Direct   bool   `json:"direct,omitempty"`   // connects the services without the fault proxy
	Console  bool   `json:"console,omitempty"`  // there is one
	Redis    string `json:"redis,omitempty"`    // Single (also when empty) or Sentinel
	Postgres string `json:"postgres,omitempty"` // Single (also when empty), Standby or SyncStandby
	Pooler   string `json:"pooler,omitempty"`   // PgBouncer: between the replicas and PostgreSQL, in transaction mode; empty: none
	// Promoted is the former standby that takes writes; empty: the first server does.
	Promoted string `json:"promoted,omitempty"`
	// Ended is set while the former primary is down, with commits that the new one may not have.
	Ended bool `json:"ended,omitempty"`
}

// Where is the topology, for those who need nothing else of a stack.
func (t *Topology) Where() *Topology { return t }

// IsReplicated reports whether Redis is of the kind Sentinel.
func (t *Topology) IsReplicated() bool { return t.Redis == Sentinel }

// HasStandby reports whether PostgreSQL has a standby.
func (t *Topology) HasStandby() bool { return t.Postgres == Standby || t.Postgres == SyncStandby }

// IsPooled reports whether replicas reach PostgreSQL through PgBouncer.
func (t *Topology) IsPooled() bool { return t.Pooler == PgBouncer }

// Primary is the PostgreSQL that takes writes.
func (t *Topology) Primary() string { return cmp.Or(t.Promoted, Postgres) }

// StandbyServer is the other one.
func (t *Topology) StandbyServer() string {
	if t.Primary() == Postgres {
		return PostgresStandby
	}
	return Postgres
}

// Services are those that the stack has, in the order in which they are listed.
func (t *Topology) Services() (names []string) {
	for _, s := range services {
		if s.isIn == nil || s.isIn(t) {
			names = append(names, s.name)
		}
	}
	return names
}

// Port is where a service listens.
func (t *Topology) Port(name string) int { return serviceOf(name).port + t.Offset }

// Ports lists every port that a service listens on.
func (t *Topology) Ports(name string) []int {
	list := []int{t.Port(name)}
	if ops := serviceOf(name).ops; ops != 0 {
		list = append(list, ops+t.Offset)
	}
	for _, e := range edges {
		if name == Proxy {
			list = append(list, e.port+t.Offset)
		}
	}
	return list
}

// Addr is where a service listens: host:port on loopback.
func (t *Topology) Addr(name string) string { return localserver.Loopback(t.Port(name)) }

// Ops is the address of a service's second port, or of its only one.
func (t *Topology) Ops(name string) string {
	s := serviceOf(name)
	return localserver.Loopback(cmp.Or(s.ops, s.port) + t.Offset)
}

// URL is the public address, nginx's.
func (t *Topology) URL() string { return "http://" + t.Addr(Nginx) }

// PostgresPrimary is the address of the PostgreSQL that takes writes.
func (t *Topology) PostgresPrimary() string { return t.Addr(t.Primary()) }

// PostgresURL is the connection URL of a stack's database at addr (host:port).
func PostgresURL(addr string) string { return localserver.PostgresURL(addr) }

// edge is a connection between services that goes through the fault proxy, so that it can be cut.
type edge struct {
	from, to string
	port     int
}

// edges are the connections that go through the fault proxy, each at a port of its own. The last
// digits of a port tell where it leads.
var edges = []edge{
	{Nginx, API1, 20081},
	{Nginx, API2, 20082},
	{API1, Postgres, 21432},
	{API1, Redis, 21379},
	{API1, PSP, 21090},
	{API1, Mail, 21025},
	{API2, Postgres, 22432},
	{API2, Redis, 22379},
	{API2, PSP, 22090},
	{API2, Mail, 22025},
	{API1, PostgresStandby, 21433},
	{API2, PostgresStandby, 22433},
	{API1, PgBouncer, 21434},
	{API2, PgBouncer, 22434},
	{PostgresStandby, Postgres, 23432}, // the replication
	{Postgres, PostgresStandby, 23433}, // after a failover
}

// replication is the connection between the two servers of a replicated Redis. It has no port,
// because it does not go through the proxy.
var replication = edge{from: RedisReplica, to: Redis}

// name is what the proxy calls the edge.
func (e edge) name() string { return e.from + "-to-" + e.to }

func (e edge) String() string { return e.from + " → " + e.to }

// joins reports whether the edge is between a and b, in either order.
func (e edge) joins(a, b string) bool {
	return (e.from == a && e.to == b) || (e.from == b && e.to == a)
}

// Via is where from reaches to: the proxy's port for that edge, or to itself.
func (t *Topology) Via(from, to string) string {
	if t.Direct {
		return t.Addr(to)
	}
	i := slices.IndexFunc(edges, func(e edge) bool { return e.from == from && e.to == to })
	return localserver.Loopback(edges[i].port + t.Offset)
}

// findEdges returns the edges that can be cut between two services of this stack, named in either
// order: one, or between the two servers of PostgreSQL one for each that may be the standby. With a
// pooler, a replica's way to PostgreSQL is the one to the pooler.
func (t *Topology) findEdges(a, b string) (found []edge, err error) {
	if slices.Contains(postgresPair, a) {
		a, b = b, a
	}
	if t.IsPooled() && slices.Contains(Replicas, a) && slices.Contains(postgresPair, b) {
		b = PgBouncer
	}
	for _, e := range edges {
		if e.joins(a, b) {
			found = append(found, e)
		}
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("%s and %s don't talk to each other; these do: %v", a, b, edges)
	}
	switch {
	case t.Direct:
		return nil, errors.New("partition, slow and cut need the fault proxy, so a stack without --direct")
	case t.IsReplicated() && found[0].to == Redis:
		return nil, errors.New("with Sentinel, a replica goes to Redis itself, past the switchboard; what works: " +
			"pause redis, kill redis, partition redis-replica redis")
	}
	return found, nil
}
