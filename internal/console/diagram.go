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

// Diagram lays an attempt out from top to bottom, in the order of time.
func (a attempt) Diagram() (d diagram) {
	rows := a.messages()
	index := map[string]int{}
	for _, name := range a.lanes(rows) {
		index[name] = len(d.Lanes)
		d.Lanes = append(d.Lanes, lane{Title: titles[name], X: laneWidth/2 + laneWidth*len(d.Lanes)})
	}
	var words []string
	last := map[string]int{} // row of a lane
	d.Width, d.Height = laneWidth*len(d.Lanes), laneHead+rowHeight*(len(rows)+1)
	for i, m := range rows {
		m.Y = laneHead + rowHeight*(i+1)
		m.X1, m.X2 = d.Lanes[index[m.from]].X, d.Lanes[index[m.to]].X
		m.LabelX, m.Full = min(m.X1, m.X2)+8, m.Label
		m.Label = shorten(m.Label, max(maxLabel, int(float64(max(m.X1, m.X2)-m.LabelX)/charWidth)))
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

func shorten(label string, most int) string {
	if runes := []rune(label); len(runes) > most {
		return string(runes[:most-1]) + "…"
	}
	return label
}

// lanes are those that a message touches, in the order of the way in.
func (a attempt) lanes(rows []message) []string {
	var used []string
	for _, name := range []string{client, stack.Nginx, stack.API1, stack.API2, stack.Redis, stack.Postgres, stack.PSP} {
		if name == client || name == a.Door || slices.ContainsFunc(rows, func(m message) bool { return m.from == name || m.to == name }) {
			used = append(used, name)
		}
	}
	return used
}

// messages are what was said, in the order of time. The replicas tell what they did; that a request
// arrived at one is seen by the first thing that it did.
func (a attempt) messages() []message {
	var rows []message
	door := client
	if a.Door == stack.Nginx {
		rows = append(rows, message{Kind: "ask", from: client, to: stack.Nginx, Label: a.What})
		door = stack.Nginx
	}
	arrived := map[string]bool{}
	for _, group := range a.groups() {
		first := group[0]
		if !arrived[first.Replica] {
			arrived[first.Replica] = true
			label := "the same request"
			if len(arrived) == 1 {
				label = "POST"
			} else if a.Door == stack.Nginx {
				label = "passed on"
			}
			rows = append(rows, message{Kind: "ask", from: door, to: first.Replica, Label: label})
		}
		if first.To != "" {
			rows = append(rows, message{Kind: "ask", from: first.Replica, to: first.To, Label: a.describe(group)})
		}
	}
	return append(rows, a.wayBack(arrived)...)
}

// wayBack is the answer on its way to the client.
func (a attempt) wayBack(arrived map[string]bool) []message {
	if !a.Done {
		return nil
	}
	m := message{Kind: "answer", from: a.Door, to: client, Label: a.Outcome()}
	if arrived[a.ServedBy] {
		m.from = a.ServedBy
	}
	if a.Status == 0 {
		m.Kind = "lost"
	}
	return []message{m}
}

// groups puts calls that follow each other from one replica to one server into one row.
func (a attempt) groups() [][]call {
	var groups [][]call
	for _, c := range a.Calls {
		last := len(groups) - 1
		if last >= 0 && c.To == stack.Postgres && groups[last][0].To == c.To && groups[last][0].Replica == c.Replica {
			groups[last] = append(groups[last], c)
			continue
		}
		groups = append(groups, []call{c})
	}
	return groups
}

// describe says what a row asked for, and how long it took.
func (a attempt) describe(group []call) string {
	var names []string
	began, ended := group[0].Began, group[0].Began
	failed := ""
	for _, c := range group {
		if name := a.name(c); !slices.Contains(names, name) {
			names = append(names, name)
		}
		if end := c.Began.Add(c.Took); end.After(ended) {
			ended = end
		}
		if c.Failed {
			failed = " ✕"
		}
	}
	return strings.Join(names, ", ") + failed + " · " + brief(ended.Sub(began))
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
	for _, other := range a.Calls {
		if other.Replica == c.Replica && other.To == stack.Redis && other.Began.After(c.Began) {
			return "renew lease"
		}
	}
	switch {
	case a.Lost() != "" && a.ServedBy == c.Replica:
		return "keep answer: refused"
	case !a.Done || a.ServedBy != c.Replica:
		return "renew lease"
	case a.Status < 500 && a.Status != 0:
		return "keep answer"
	}
	return "release"
}
