package topology

import "fmt"

// Edge is a connection between services that goes through the fault proxy, so that it can be cut.
type Edge struct {
	From, To string
	port     int
}

// Edges are the connections that go through the fault proxy, each at a port of its own. The
// last digits of a port tell where it leads.
var Edges = []Edge{
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

// Replication is the connection between the two servers of a replicated Redis. It has no port,
// because it does not go through the proxy.
var Replication = Edge{From: RedisReplica, To: Redis}

// Name is what the proxy calls the edge.
func (e Edge) Name() string { return e.From + "-to-" + e.To }

func (e Edge) String() string { return e.From + " → " + e.To }

// Joins reports whether the edge is between a and b, in either order.
func (e Edge) Joins(a, b string) bool {
	return (e.From == a && e.To == b) || (e.From == b && e.To == a)
}

// FindEdges returns the edges that can be cut between two services of this stack, named in either
// order: one, or between the two servers of PostgreSQL one for each that may be the standby.
func (t *Topology) FindEdges(a, b string) (found []Edge, err error) {
	for _, e := range Edges {
		if e.Joins(a, b) {
			found = append(found, e)
		}
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("%s and %s don't talk to each other; these do: %v", a, b, Edges)
	}
	switch e := found[0]; {
	case t.Direct:
		return nil, fmt.Errorf("%s is a direct connection: partition, slow and cut need the fault proxy, so a stack that was brought up "+
			"without --direct", e)
	case t.IsReplicated() && e.To == Redis:
		return nil, fmt.Errorf("with Sentinel, %s learns where Redis is and goes there itself, past the switchboard; "+
			"what works: pause redis, kill redis, partition %s %s", e.From, Replication.From, Replication.To)
	}
	return found, nil
}
