package stack

import (
	"fmt"
	"slices"

	"github.com/oncepay/oncepay/internal/localserver"
	"github.com/oncepay/oncepay/internal/stack/faultproxy"
)

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

// Hops are what the fault proxy of a stack with this port offset is between.
func Hops(offset int) (hops []faultproxy.Hop) {
	t := Topology{Offset: offset}
	for _, e := range edges {
		hops = append(hops, faultproxy.Hop{Name: e.name(), Listen: t.Via(e.from, e.to), Upstream: t.Addr(e.to)})
	}
	return hops
}

// findEdges returns the edges that can be cut between two services of this stack, named in either
// order: one, or between the two servers of PostgreSQL one for each that may be the standby.
func (t *Topology) findEdges(a, b string) (found []edge, err error) {
	for _, e := range edges {
		if e.joins(a, b) {
			found = append(found, e)
		}
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("%s and %s don't talk to each other; these do: %v", a, b, edges)
	}
	switch e := found[0]; {
	case t.Direct:
		return nil, fmt.Errorf("%s is a direct connection: partition, slow and cut need the fault proxy, so a stack that was brought up "+
			"without --direct", e)
	case t.IsReplicated() && e.to == Redis:
		return nil, fmt.Errorf("with Sentinel, %s learns where Redis is and goes there itself, past the switchboard; "+
			"what works: pause redis, kill redis, partition %s %s", e.from, replication.from, replication.to)
	}
	return found, nil
}
