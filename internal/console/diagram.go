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

// diagram is an attempt as a sequence diagram, from top to bottom in the order of time. It has the
// lanes that a message touches, in the order of the way in.
type diagram struct {
	attempt
	Lanes    []string
	Messages []message
}

// message is a row: an arrow from one lane to another.
type message struct {
	Kind            string // ask, answer or lost
	From, To, Label string
}

func (m message) touches(lane string) bool { return m.From == lane || m.To == lane }

// wayIn are the lanes that there may be.
var wayIn = []string{client, stack.Nginx, stack.API1, stack.API2, stack.Redis, stack.Postgres, stack.PSP}

// Diagram draws an attempt.
func (a attempt) Diagram() diagram {
	d := diagram{attempt: a, Messages: a.messages()}
	for _, lane := range wayIn {
		if slices.ContainsFunc(d.Messages, func(m message) bool { return m.touches(lane) }) {
			d.Lanes = append(d.Lanes, lane)
		}
	}
	return d
}

// X and Y are where a lane and a row are.
func (d diagram) X(lane string) int { return laneWidth/2 + laneWidth*slices.Index(d.Lanes, lane) }
func (d diagram) Y(row int) int     { return laneHead + rowHeight*(row+1) }

func (d diagram) Left(m message) int { return min(d.X(m.From), d.X(m.To)) }
func (d diagram) Width() int         { return laneWidth*len(d.Lanes) + overhang }
func (d diagram) Height() int        { return d.Y(len(d.Messages)) }

// Dead is where the lane of a replica that fell silent ends, or 0.
func (d diagram) Dead(lane string) (y int) {
	for row, m := range d.Messages {
		if m.touches(lane) && d.fellSilent(lane) {
			y = d.Y(row) + rowHeight/2
		}
	}
	return y
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
