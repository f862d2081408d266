package console

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/oncepay/oncepay/internal/stack"
)

const (
	// clients are the node of the picture from which requests come. A diagram has one client.
	clients, client = "clients", "client"
	// stream is the node of the events, which is in Redis.
	stream = "stream"
)

// connection is an arrow of the picture.
type connection struct{ from, to string }

// layout says where the nodes of the picture are, and what is to be seen there now. There are two:
// for wide and for narrow pages.
type layout struct {
	Name       string
	Size, Node point               // of the picture, and of each node
	nodes      map[string]point    // centres
	spots      map[connection]spot // of arrows that cross each other, so that their labels do not meet

	Nodes  []node
	Arrows []arrow
}

// spot is where on an arrow its label and its faults are: 0 is its beginning, 1 its end. Both are
// in the middle of an arrow that no other one crosses.
type spot struct{ label, fault float64 }

type point struct{ X, Y float64 }

var layouts = []layout{
	{Name: "wide", Size: point{1060, 420}, Node: point{132, 56}, nodes: map[string]point{
		clients: {72, 210}, stack.Nginx: {286, 210}, stack.API1: {506, 96}, stack.API2: {506, 324},
		stack.Redis: {796, 50}, stack.Postgres: {796, 210}, stack.PSP: {796, 370}, stream: {982, 130},
	}, spots: map[connection]spot{
		{stack.API1, stack.Redis}: {.42, .78}, {stack.API1, stack.Postgres}: {.38, .78}, {stack.API1, stack.PSP}: {.16, .74},
		{stack.API2, stack.PSP}: {.42, .78}, {stack.API2, stack.Postgres}: {.38, .78}, {stack.API2, stack.Redis}: {.16, .74},
	}},
	{Name: "narrow", Size: point{360, 676}, Node: point{112, 56}, nodes: map[string]point{
		clients: {180, 36}, stack.Nginx: {180, 152}, stack.API1: {86, 276}, stack.API2: {274, 276},
		stack.Redis: {62, 446}, stack.Postgres: {180, 522}, stack.PSP: {298, 446}, stream: {180, 640},
	}, spots: map[connection]spot{
		{stack.API1, stack.Redis}: {.45, .8}, {stack.API1, stack.Postgres}: {.78, .5}, {stack.API1, stack.PSP}: {.22, .72},
		{stack.API2, stack.PSP}: {.45, .8}, {stack.API2, stack.Postgres}: {.78, .5}, {stack.API2, stack.Redis}: {.22, .72},
	}},
}

// titles of the nodes, of the lanes of a diagram, and of services.
var titles = map[string]string{
	clients: clients, client: client, stack.Nginx: "nginx", stack.API1: "api-1", stack.API2: "api-2", stack.Redis: "Redis",
	stack.Postgres: "PostgreSQL", stack.PSP: "provider", stream: "stream", stack.Mail: "mail",
}

// arrows of the picture, in the order in which they are drawn.
var arrows = []connection{
	{clients, stack.Nginx}, {stack.Nginx, stack.API1}, {stack.Nginx, stack.API2},
	{stack.API1, stack.Redis}, {stack.API1, stack.Postgres}, {stack.API1, stack.PSP},
	{stack.API2, stack.Redis}, {stack.API2, stack.Postgres}, {stack.API2, stack.PSP},
	{stack.Postgres, stream},
}

// health is what the switchboard last said.
type health struct {
	Services map[string]stack.ServiceStatus
	Faults   map[connection][]string // such as "partition", "slow-200ms"
	Backlog  int64                   // events that are not yet published
	Error    string                  // why nothing is known
}

type node struct {
	Title, State, Note string
	Service            bool
	At                 point // top left corner
}

type arrow struct {
	Name             string // such as "api-1 to Redis"
	From, To         point
	Open             int     // requests in flight
	Rate             float64 // per second
	Faults           []string
	LabelAt, FaultAt point
	Down             float64 // how far below that the faults are
}

// picture is what the template draws, and says to those who do not see it.
type picture struct {
	health
	Layouts []layout
}

// pictureOf draws what is known now.
func (s *Server) pictureOf(h health) picture {
	open := s.inFlight()
	p := picture{health: h}
	for _, l := range layouts {
		for _, name := range slices.Sorted(maps.Keys(l.nodes)) {
			at := l.nodes[name]
			state, note := h.stateOf(name)
			l.Nodes = append(l.Nodes, node{titles[name], state, note, name != clients && name != stream,
				point{at.X - l.Node.X/2, at.Y - l.Node.Y/2}})
		}
		for _, c := range arrows {
			a := l.arrow(c)
			a.Open, a.Rate, a.Faults = open[c], s.flows.rate(c), h.Faults[c]
			l.Arrows = append(l.Arrows, a)
		}
		p.Layouts = append(p.Layouts, l)
	}
	return p
}

// stateOf says how a node is, and what stands in it.
func (h health) stateOf(name string) (state, note string) {
	switch name {
	case clients:
		return "ready", "shoppers"
	case stream:
		return h.State(stack.Redis), fmt.Sprintf("%d waiting", h.Backlog)
	}
	return h.State(name), h.State(name)
}

// State says how a service is: ready, not ready, paused, stopped, or unknown.
func (h health) State(service string) string {
	return cmp.Or(h.Services[service].State, "unknown")
}

// arrow goes from edge to edge of two nodes.
func (l layout) arrow(c connection) arrow {
	from, to := l.nodes[c.from], l.nodes[c.to]
	a := arrow{Name: titles[c.from] + " to " + titles[c.to], From: l.leave(from, to), To: l.leave(to, from)}
	at, crossed := l.spots[c]
	if !crossed {
		at, a.Down = spot{.5, .5}, 28
	}
	a.LabelAt, a.FaultAt = between(a.From, a.To, at.label), between(a.From, a.To, at.fault)
	return a
}

// leave is where the line from one centre to another leaves the first node.
func (l layout) leave(from, to point) point {
	const gap = 4
	return between(from, to, min(1, (l.Node.X/2+gap)/math.Abs(to.X-from.X), (l.Node.Y/2+gap)/math.Abs(to.Y-from.Y)))
}

func between(a, b point, t float64) point { return point{a.X + (b.X-a.X)*t, a.Y + (b.Y-a.Y)*t} }

// inFlight counts the console's own requests that have no answer yet, at the replica that was last
// seen working on them.
func (s *Server) inFlight() map[connection]int {
	open := map[connection]int{}
	for _, a := range s.journal.now() {
		if a.Done {
			continue
		}
		if a.Door == stack.Nginx {
			open[connection{clients, stack.Nginx}]++
		}
		if worker := a.worker(); worker != "" {
			open[connection{stack.Nginx, worker}]++
		}
	}
	return open
}
