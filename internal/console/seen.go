package console

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/oncepay/oncepay/internal/stack"
	"github.com/oncepay/oncepay/internal/tiers"
	"github.com/oncepay/oncepay/internal/wait"
)

// lookInterval is how often the servers are asked how they are, while a page is open.
const lookInterval = time.Second

// seen is what the server knows of the deployment.
type seen struct {
	health    health
	published int64      // events
	key       string     // in the key view
	view      tiers.View // what the tiers know of it; it has no key before they were asked
	mails     []tiers.Mail
}

// guarded is a value that has one owner at a time.
type guarded[T any] struct {
	mu    sync.Mutex
	value T
}

// now is a copy, so its lists must only grow, or be replaced.
func (g *guarded[T]) now() T {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.value
}

func (g *guarded[T]) change(change func(*T)) {
	g.mu.Lock()
	defer g.mu.Unlock()
	change(&g.value)
}

// keepLooking looks at everything once a second until ctx ends.
func (s *Server) keepLooking(ctx context.Context) {
	for wait.Pause(ctx, lookInterval) == nil {
		if s.watched() {
			s.look(ctx)
			s.readStream(ctx)
			s.readKey(ctx, s.seen.now().key)
			s.readMails(ctx)
		}
	}
}

// look asks the switchboard, and returns what it said.
func (s *Server) look(ctx context.Context) health {
	services, faults, err := s.cfg.Status(ctx)
	h := health{Services: map[string]stack.ServiceStatus{}, Faults: map[connection][]string{}}
	if err != nil {
		h.Error = err.Error()
	}
	for _, service := range services {
		h.Services[service.Name] = service
	}
	for _, line := range faults { // such as "api-1 → redis: partition"
		where, what, _ := strings.Cut(line, ": ")
		from, to, _ := strings.Cut(where, " → ")
		h.Faults[connection{from, to}] = append(h.Faults[connection{from, to}], what)
	}
	s.seen.change(func(now *seen) {
		h.Backlog = now.health.Backlog
		now.health = h
	})
	return h
}

// readStream counts the events that were published since the last look.
func (s *Server) readStream(ctx context.Context) {
	at, err := tiers.ReadStream(ctx, s.cfg.Servers(ctx).Postgres)
	if err != nil {
		return // the picture says that PostgreSQL is away
	}
	s.seen.change(func(now *seen) {
		if now.published > 0 {
			s.flows.add(connection{stack.Postgres, stream}, int(max(0, at.Published-now.published)))
		}
		now.published, now.health.Backlog = at.Published, max(0, at.Last-at.Published)
	})
}

// showKey shows a key in the key view.
func (s *Server) showKey(ctx context.Context, key string) {
	key = strings.TrimSpace(key)
	s.seen.change(func(now *seen) { now.key, now.view = key, tiers.View{} })
	s.readKey(ctx, key)
}

// readKey reads the tiers of the key in the key view.
func (s *Server) readKey(ctx context.Context, key string) {
	if key == "" {
		return
	}
	view := tiers.Read(ctx, s.cfg.Servers(ctx), key)
	s.seen.change(func(now *seen) {
		if now.key == key {
			now.view = view
		}
	})
}

// readMails reads the newest mails. While the mail server is away, those that were seen stay.
func (s *Server) readMails(ctx context.Context) {
	if mails, err := tiers.NewestMails(ctx, s.cfg.Servers(ctx).Mails); err == nil {
		s.seen.change(func(now *seen) { now.mails = mails })
	}
}
