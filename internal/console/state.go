package console

import (
	"context"
	"io"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/oncepay/oncepay/internal/stack"
	"github.com/oncepay/oncepay/internal/stack/mailsink"
	"github.com/oncepay/oncepay/internal/tiers"
	"github.com/oncepay/oncepay/internal/wait"
)

const (
	// lookInterval is how often the servers are asked how they are, while a page is open.
	lookInterval = time.Second
	// flowWindow, in seconds, is what a rate is the average of.
	flowWindow = 5
)

// state is what the console knows, and what the page is rendered from. Server.mu guards it.
type state struct {
	health
	Backlog  int64      // events that are not yet published
	View     tiers.View // what the tiers know of the key in the key view
	Mails    []mailsink.Mail
	Story    story
	Attempts []*attempt // the newest, the last one first

	begun     int                          // attempts
	bought    purchase                     // the last one
	published int64                        // events; -1: not known
	flows     map[int64]map[connection]int // what went over a connection in a second since 1970
}

// health is what the switchboard last said.
type health struct {
	Services map[string]stack.ServiceStatus // and of the picture's other nodes
	Faults   map[connection][]string        // such as "partition", "slow-200ms"
	Wrong    []string                       // in a few words
	Error    string                         // why nothing is known
}

// count adds to what goes over a connection.
func (now *state) count(c connection, n int) {
	second := time.Now().Unix()
	if now.flows[second] == nil {
		maps.DeleteFunc(now.flows, func(old int64, _ map[connection]int) bool { return old < second-flowWindow })
		now.flows[second] = map[connection]int{}
	}
	now.flows[second][c] += n
}

// Rate is how much went over a connection in each of the last full seconds.
func (now *state) Rate(c connection) float64 {
	sum, second := 0, time.Now().Unix()
	for ago := range int64(flowWindow) {
		sum += now.flows[second-1-ago][c]
	}
	return float64(sum) / flowWindow
}

// change is how the state is changed, and read.
func (s *Server) change(change func(*state)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(&s.state)
}

// keepLooking looks at everything at once, and then once a second until ctx ends.
func (s *Server) keepLooking(ctx context.Context) {
	for ctx.Err() == nil {
		s.look(ctx)
		s.lookBehind(ctx)
		_ = wait.Pause(ctx, lookInterval)
	}
}

// look asks the switchboard, and returns what it said.
func (s *Server) look(ctx context.Context) health {
	var states []stack.ServiceStatus
	var faults []string
	it, err := s.board(io.Discard)
	if err == nil {
		states, faults, err = it.Status(ctx)
	}
	h := health{Services: map[string]stack.ServiceStatus{clients: {State: "ready"}}, Faults: map[connection][]string{}}
	if err != nil {
		h.Error = err.Error()
	}
	for _, service := range states {
		h.Services[service.Name] = service
		if slices.Contains(services, service.Name) && service.State != "ready" {
			h.Wrong = append(h.Wrong, title(service.Name)+" "+service.State)
		}
	}
	h.Services[stream] = h.Services[stack.Redis] // it is there
	for _, line := range faults {                // such as "api-1 → redis: partition"
		where, what, _ := strings.Cut(line, ": ")
		from, to, _ := strings.Cut(where, " → ")
		c := connection{from, to}
		h.Faults[c] = append(h.Faults[c], what)
		h.Wrong = append(h.Wrong, title(from)+" → "+title(to)+": "+what)
	}
	s.change(func(now *state) { now.health = h })
	return h
}

// where is where the servers are now, or were at first if that cannot be read, as look says.
func (s *Server) where() *stack.Topology {
	it, err := s.board(io.Discard)
	if err != nil {
		return s.shop.at
	}
	return it.Where()
}

// lookBehind reads the newest mails, the stream and the tiers of a key. What cannot be read stays
// as it was: the picture says who is away.
func (s *Server) lookBehind(ctx context.Context) {
	var key string
	s.change(func(now *state) { key = now.View.Key })
	at := s.where()
	view := tiers.Read(ctx, at, key)
	mails, mailErr := tiers.NewestMails(ctx, at)
	s.change(func(now *state) {
		if now.View.Key == key {
			now.View = view
		}
		if is := view.Stream; is != nil {
			if now.published >= 0 {
				now.count(connection{stack.Postgres, stream}, int(max(0, is.Published-now.published)))
			}
			now.published, now.Backlog = is.Published, max(0, is.Last-is.Published)
		}
		if mailErr == nil {
			now.Mails = mails
		}
	})
}

// lookAt shows a key in the key view.
func (s *Server) lookAt(ctx context.Context, form url.Values) (string, error) {
	s.showKey(ctx, form.Get("key"))
	return "Shown: key " + form.Get("key"), nil
}

// showKey shows a key in the key view.
func (s *Server) showKey(ctx context.Context, key string) {
	view := tiers.Read(ctx, s.where(), strings.TrimSpace(key))
	s.change(func(now *state) { now.View = view })
}
