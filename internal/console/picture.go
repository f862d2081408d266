package console

import (
	"cmp"
	"math"

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

// layout says where the nodes and arrows of the picture are. There are two: for wide and for narrow
// pages.
type layout struct {
	Name       string
	Size, Node point               // of the picture, and of each node
	Nodes      map[string]point    // centres
	spots      map[connection]spot // of arrows that cross each other, so that their labels do not meet
}

// spot is where on an arrow its label and its faults are: 0 is its beginning, 1 its end. Both are
// in the middle of an arrow that no other one crosses.
type spot struct{ label, fault float64 }

type point struct{ X, Y float64 }

var layouts = []layout{
	{Name: "wide", Size: point{1060, 420}, Node: point{132, 56}, Nodes: map[string]point{
		clients: {72, 210}, stack.Nginx: {286, 210}, stack.API1: {506, 96}, stack.API2: {506, 324},
		stack.Redis: {796, 50}, stack.Postgres: {796, 210}, stack.PSP: {796, 370}, stream: {982, 130},
	}, spots: map[connection]spot{
		{stack.API1, stack.Redis}: {.42, .78}, {stack.API1, stack.Postgres}: {.38, .78}, {stack.API1, stack.PSP}: {.16, .74},
		{stack.API2, stack.PSP}: {.42, .78}, {stack.API2, stack.Postgres}: {.38, .78}, {stack.API2, stack.Redis}: {.16, .74},
	}},
	{Name: "narrow", Size: point{360, 676}, Node: point{112, 56}, Nodes: map[string]point{
		clients: {180, 36}, stack.Nginx: {180, 152}, stack.API1: {86, 276}, stack.API2: {274, 276},
		stack.Redis: {62, 446}, stack.Postgres: {180, 522}, stack.PSP: {298, 446}, stream: {180, 640},
	}, spots: map[connection]spot{
		{stack.API1, stack.Redis}: {.45, .8}, {stack.API1, stack.Postgres}: {.78, .5}, {stack.API1, stack.PSP}: {.22, .72},
		{stack.API2, stack.PSP}: {.45, .8}, {stack.API2, stack.Postgres}: {.78, .5}, {stack.API2, stack.Redis}: {.22, .72},
	}},
}

// title is what the page calls a node, a lane of a diagram, or a service.
func title(name string) string {
	return cmp.Or(map[string]string{stack.Redis: "Redis", stack.Postgres: "PostgreSQL", stack.PSP: "provider"}[name], name)
}

var (
	// breakable are the connections that the switchboard can break.
	breakable = []connection{
		{stack.API1, stack.Redis}, {stack.API1, stack.Postgres}, {stack.API1, stack.PSP},
		{stack.API2, stack.Redis}, {stack.API2, stack.Postgres}, {stack.API2, stack.PSP},
		{stack.Nginx, stack.API1}, {stack.Nginx, stack.API2},
	}
	// arrows of the picture, in the order in which they are drawn.
	arrows = append([]connection{{clients, stack.Nginx}, {stack.Postgres, stream}}, breakable...)
)

// Open is how many of the console's own requests on a connection have no answer yet.
func (now *state) Open(c connection) (open int) {
	for _, a := range now.Attempts {
		if a.isOn(c) {
			open++
		}
	}
	return open
}

// Name is such as "api-1 to Redis".
func (c connection) Name() string { return title(c.from) + " to " + title(c.to) }

// State says how a node is: ready, not ready, paused, stopped, or unknown.
func (h health) State(node string) string { return cmp.Or(h.Services[node].State, "unknown") }

// Corner is the top left one of a node.
func (l layout) Corner(centre point) point {
	return point{centre.X - l.Node.X/2, centre.Y - l.Node.Y/2}
}

// place is where an arrow is: from edge to edge of two nodes.
type place struct {
	From, To, Label, Fault point
	Down                   float64 // how far below their point the faults are
}

// Place puts an arrow into the picture.
func (l layout) Place(c connection) place {
	from, to := l.Nodes[c.from], l.Nodes[c.to]
	p := place{From: l.leave(from, to), To: l.leave(to, from)}
	at, crossed := l.spots[c]
	if !crossed {
		at, p.Down = spot{.5, .5}, 28
	}
	p.Label, p.Fault = between(p.From, p.To, at.label), between(p.From, p.To, at.fault)
	return p
}

// leave is where the line from one centre to another leaves the first node.
func (l layout) leave(from, to point) point {
	const gap = 4
	return between(from, to, min(1, (l.Node.X/2+gap)/math.Abs(to.X-from.X), (l.Node.Y/2+gap)/math.Abs(to.Y-from.Y)))
}

func between(a, b point, t float64) point { return point{a.X + (b.X-a.X)*t, a.Y + (b.Y-a.Y)*t} }
