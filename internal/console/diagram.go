package console

import (
	"slices"
	"strings"

	"github.com/oncepay/oncepay/internal/stack"
)

// Measures of a sequence diagram, in the units of its SVG.
const (
	laneWidth = 118
	laneHead  = 34
	rowHeight = 26
	overhang  = 180 // of the label at the last lane
	maxLabel  = 36  // characters
)

// diagram is an attempt as a sequence diagram.
type diagram struct {
	Width, Height int
	Lanes         []lane
	Messages      []message
}

type lane struct {
	Name string
	X    int
	Dead int // where the lane ends early; 0: it does not
}

// message is a row: an arrow from one lane to another.
type message struct {
	Kind            string // ask, answer or lost
	From, To, Label string
	X1, X2, Left, Y int
}

// wayIn are the lanes that there may be.
var wayIn = []string{client, stack.Nginx, stack.API1, stack.API2, stack.Redis, stack.Postgres, stack.PSP}

// Diagram lays an attempt out from top to bottom, in the order of time. It has the lanes that a
// message touches, in the order of the way in.
func (a attempt) Diagram() (d diagram) {
	d.Messages = a.messages()
	x := map[string]int{} // of a lane
	for _, name := range wayIn {
		if slices.ContainsFunc(d.Messages, func(m message) bool { return m.From == name || m.To == name }) {
			x[name] = laneWidth/2 + laneWidth*len(x)
			d.Lanes = append(d.Lanes, lane{Name: name, X: x[name]})
		}
	}
	last := map[string]int{} // message of a lane
	y := laneHead
	for i := range d.Messages {
		m := &d.Messages[i]
		y += rowHeight
		m.X1, m.X2, m.Left, m.Y = x[m.From], x[m.To], min(x[m.From], x[m.To]), y
		last[m.From], last[m.To] = y, y
	}
	for i, l := range d.Lanes {
		if a.fellSilent(l.Name) {
			d.Lanes[i].Dead = last[l.Name] + rowHeight/2
		}
	}
	d.Width, d.Height = laneWidth*len(d.Lanes)+overhang, y+rowHeight
	return d
}

func shorten(label string) string {
	if runes := []rune(label); len(runes) > maxLabel {
		return string(runes[:maxLabel-1]) + "…"
	}
	return label
}

// messages are what was said, in the order of time. The replicas tell what they did; that a request
// arrived at one is seen by the first thing that it did.
func (a attempt) messages() (rows []message) {
	ask := func(from, to, label string) {
		rows = append(rows, message{Kind: "ask", From: from, To: to, Label: label})
	}
	door, arrival := client, "POST"
	if a.Door == stack.Nginx {
		ask(client, stack.Nginx, a.What)
		door = stack.Nginx
	}
	arrived := map[string]bool{}
	for _, c := range a.grouped() {
		if !arrived[c.Replica] {
			ask(door, c.Replica, arrival)
			arrived[c.Replica], arrival = true, "passed on"
		}
		if c.To != "" {
			ask(c.Replica, c.To, c.Name+" · "+brief(c.Took))
		}
	}
	if a.Done {
		answer := message{Kind: "answer", From: a.Door, To: client, Label: a.Outcome()}
		if arrived[a.ServedBy] {
			answer.From = a.ServedBy
		}
		if a.Status == 0 {
			answer.Kind = "lost"
		}
		rows = append(rows, answer)
	}
	return rows
}

// grouped makes one call of those that follow each other from one replica to PostgreSQL, and names
// what they asked for, as a row of the diagram says it.
func (a attempt) grouped() (rows []call) {
	for _, c := range a.Calls {
		c.Name = a.name(c)
		if c.Failed {
			c.Name += " ✕"
		}
		last := len(rows) - 1
		switch {
		case last < 0 || c.To != stack.Postgres || rows[last].To != c.To || rows[last].Replica != c.Replica:
			rows = append(rows, c)
		default:
			if !slices.Contains(strings.Split(rows[last].Name, ", "), c.Name) {
				rows[last].Name += ", " + c.Name
			}
			rows[last].Took = max(rows[last].Took, c.Began.Add(c.Took).Sub(rows[last].Began))
		}
	}
	return rows
}

// name translates what the drivers call their questions.
func (a attempt) name(c call) string {
	later := func(other call) bool {
		return other.Replica == c.Replica && other.To == stack.Redis && other.Began.After(c.Began)
	}
	switch {
	case c.To == stack.PSP:
		return "charge"
	case c.To == stack.Redis && c.Name == "set":
		return "acquire"
	case c.To != stack.Redis || !strings.HasPrefix(c.Name, "eval"):
		return c.Name
	// It is a script. The last one of the replica that answers finishes the record.
	case !a.Done || a.ServedBy != c.Replica || slices.ContainsFunc(a.Calls, later):
		return "renew lease"
	case a.Lost() != "":
		return "keep answer: refused"
	case a.Status < 500:
		return "keep answer"
	}
	return "release"
}
