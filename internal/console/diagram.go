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
	maxLabel  = 36 // characters of a label whose arrow is short
	charWidth = 6.4
)

// diagram is an attempt as a sequence diagram.
type diagram struct {
	Width, Height int
	Lanes         []lane
	Messages      []message
	Words         string // the same as text
}

type lane struct {
	Title string
	X     int
	Dead  int // where the lane ends early; 0: it does not
}

// message is a row: an arrow from one lane to another.
type message struct {
	Kind        string // ask, answer or lost
	X1, X2, Y   int
	Label, Full string
	LabelX      int

	from, to string
}

// Diagram lays an attempt out from top to bottom, in the order of time. It has the lanes that a
// message touches, in the order of the way in.
func (a attempt) Diagram() (d diagram) {
	rows := a.messages()
	index := map[string]int{} // of a lane
	for _, name := range wayIn {
		touches := func(m message) bool { return m.from == name || m.to == name }
		if name == client || name == a.Door || slices.ContainsFunc(rows, touches) {
			index[name] = len(d.Lanes)
			d.Lanes = append(d.Lanes, lane{Title: titles[name], X: laneWidth/2 + laneWidth*len(d.Lanes)})
		}
	}
	var words []string
	last := map[string]int{} // row of a lane
	d.Width, d.Height = laneWidth*len(d.Lanes), laneHead+rowHeight*(len(rows)+1)
	for i, m := range rows {
		m.Y = laneHead + rowHeight*(i+1)
		m.X1, m.X2 = d.Lanes[index[m.from]].X, d.Lanes[index[m.to]].X
		m.LabelX = min(m.X1, m.X2) + 8
		m.Label = shorten(m.Full, max(maxLabel, int(float64(max(m.X1, m.X2)-m.LabelX)/charWidth)))
		d.Messages = append(d.Messages, m)
		d.Width = max(d.Width, m.LabelX+int(charWidth*float64(len([]rune(m.Label)))))
		last[m.from], last[m.to] = m.Y, m.Y
		words = append(words, titles[m.from]+" to "+titles[m.to]+": "+m.Full)
	}
	for _, replica := range a.dead() {
		d.Lanes[index[replica]].Dead = last[replica] + rowHeight/2
		words = append(words, replica+" fell silent")
	}
	d.Words = strings.Join(words, ". ")
	return d
}

// wayIn are the lanes that there may be.
var wayIn = []string{client, stack.Nginx, stack.API1, stack.API2, stack.Redis, stack.Postgres, stack.PSP}

func shorten(label string, most int) string {
	if runes := []rune(label); len(runes) > most {
		return string(runes[:most-1]) + "…"
	}
	return label
}

// messages are what was said, in the order of time. The replicas tell what they did; that a request
// arrived at one is seen by the first thing that it did.
func (a attempt) messages() (rows []message) {
	ask := func(from, to, label string) {
		rows = append(rows, message{Kind: "ask", from: from, to: to, Full: label})
	}
	door := client
	if a.Door == stack.Nginx {
		ask(client, stack.Nginx, a.What)
		door = stack.Nginx
	}
	arrived := map[string]bool{}
	for _, c := range a.grouped() {
		if !arrived[c.Replica] {
			label := "POST"
			switch {
			case len(arrived) == 0:
			case a.Door == stack.Nginx:
				label = "passed on"
			default:
				label = "the same request"
			}
			ask(door, c.Replica, label)
			arrived[c.Replica] = true
		}
		if c.Failed {
			c.Name += " ✕"
		}
		if c.To != "" {
			ask(c.Replica, c.To, c.Name+" · "+brief(c.Took))
		}
	}
	if !a.Done {
		return rows
	}
	answer := message{Kind: "answer", from: a.Door, to: client, Full: a.Outcome()}
	if arrived[a.ServedBy] {
		answer.from = a.ServedBy
	}
	if a.Status == 0 {
		answer.Kind = "lost"
	}
	return append(rows, answer)
}

// grouped makes one call of those that follow each other from one replica to PostgreSQL, and names
// what they asked for, as a row of the diagram says it.
func (a attempt) grouped() (rows []call) {
	for _, c := range a.Calls {
		c.Name = a.name(c)
		last := len(rows) - 1
		if last < 0 || c.To != stack.Postgres || rows[last].To != c.To || rows[last].Replica != c.Replica {
			rows = append(rows, c)
			continue
		}
		group := &rows[last]
		if !slices.Contains(strings.Split(group.Name, ", "), c.Name) {
			group.Name += ", " + c.Name
		}
		group.Failed = group.Failed || c.Failed
		group.Took = max(group.Took, c.Began.Add(c.Took).Sub(group.Began))
	}
	return rows
}

// name translates what the drivers call their questions.
func (a attempt) name(c call) string {
	switch {
	case c.To == stack.PSP:
		return "charge"
	case c.To == stack.Redis && c.Name == "set":
		return "acquire"
	case c.To == stack.Redis && strings.HasPrefix(c.Name, "eval"):
		return a.script(c)
	}
	return c.Name
}

// script says which of the scripts it was: the last one of a replica finishes the record.
func (a attempt) script(c call) string {
	isLast := !slices.ContainsFunc(a.Calls, func(other call) bool {
		return other.Replica == c.Replica && other.To == stack.Redis && other.Began.After(c.Began)
	})
	switch {
	case !isLast:
		return "renew lease"
	case a.Lost() != "" && a.ServedBy == c.Replica:
		return "keep answer: refused"
	case !a.Done || a.ServedBy != c.Replica:
		return "renew lease"
	case a.Status < 500 && a.Status != 0:
		return "keep answer"
	}
	return "release"
}
