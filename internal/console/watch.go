package console

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/oncepay/oncepay/internal/stack"
	"github.com/oncepay/oncepay/internal/tiers"
)

// watchInterval is how often the servers are asked how they are, while a page is open.
const watchInterval = time.Second

// seen is what the server knows of the deployment. Safe for concurrent use.
type seen struct {
	mu        sync.Mutex
	health    health
	published int64
	key       string // in the key view
	view      tiers.View
	mails     []tiers.Mail
}

func (s *Server) health() health {
	s.seen.mu.Lock()
	defer s.seen.mu.Unlock()
	return s.seen.health
}

// watch looks at everything once a second until ctx ends.
func (s *Server) watch(ctx context.Context) {
	tick := time.NewTicker(watchInterval)
	defer tick.Stop()
	for {
		if s.live.watched() {
			s.look(ctx)
			s.readStream(ctx)
			s.readKey(ctx)
			s.readMails(ctx)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// look asks the switchboard, and returns what it said.
func (s *Server) look(ctx context.Context) health {
	services, faults, err := s.cfg.Switchboard.Status(ctx)
	h := health{Services: map[string]stack.ServiceStatus{}, Faults: map[connection][]string{}}
	if err != nil {
		h.Error = err.Error()
	}
	for _, service := range services {
		h.Services[service.Name] = service
	}
	for _, line := range faults {
		where, what := parseFault(line)
		h.Faults[where] = append(h.Faults[where], what)
	}
	s.seen.mu.Lock()
	defer s.seen.mu.Unlock()
	h.Backlog = s.seen.health.Backlog
	s.seen.health = h
	return h
}

// readStream counts the events that were published since the last look.
func (s *Server) readStream(ctx context.Context) {
	now, err := tiers.ReadStream(ctx, s.cfg.Servers(ctx).Postgres)
	if err != nil {
		return // the picture says that PostgreSQL is away
	}
	s.seen.mu.Lock()
	defer s.seen.mu.Unlock()
	if before := s.seen.published; before > 0 && now.Published > before {
		s.flows.addMany(stack.Postgres, stream, int(now.Published-before))
	}
	s.seen.published = now.Published
	s.seen.health.Backlog = max(0, now.Last-now.Published)
}

// readKey reads the tiers of the key in the key view.
func (s *Server) readKey(ctx context.Context) {
	s.seen.mu.Lock()
	key := s.seen.key
	s.seen.mu.Unlock()
	if key == "" {
		return
	}
	view := tiers.Read(ctx, s.cfg.Servers(ctx), key)
	s.seen.mu.Lock()
	defer s.seen.mu.Unlock()
	if s.seen.key == key {
		s.seen.view = view
	}
}

// readMails reads the newest mails. While the mail server is away, those that were seen stay.
func (s *Server) readMails(ctx context.Context) {
	mails, err := tiers.NewestMails(ctx, s.cfg.Servers(ctx).Mails)
	if err != nil {
		return
	}
	s.seen.mu.Lock()
	s.seen.mails = mails
	s.seen.mu.Unlock()
}

func (s *Server) seenMails() []tiers.Mail {
	s.seen.mu.Lock()
	defer s.seen.mu.Unlock()
	return s.seen.mails
}

// showKey shows a key in the key view.
func (s *Server) showKey(ctx context.Context, key string) {
	s.seen.mu.Lock()
	s.seen.key, s.seen.view = strings.TrimSpace(key), tiers.View{}
	s.seen.mu.Unlock()
	s.readKey(ctx)
}

// seenKey returns what the key view shows; false: nothing.
func (s *Server) seenKey() (tiers.View, bool) {
	s.seen.mu.Lock()
	defer s.seen.mu.Unlock()
	return s.seen.view, s.seen.view.Key != ""
}
