package pgstore

import (
	"context"
	"log/slog"
	"sync"

	"github.com/oncepay/oncepay/idempotency"
)

// notices are notifications to send. While one statement is under way, the next one is gathered.
type notices struct {
	noticesMu sync.Mutex
	names     []string
	sent      chan struct{} // closed when nothing is left to send; nil: nothing is
}

// notify tells waiters that a record has changed, in the background: a step neither waits for that
// nor fails with it.
func (s *Store) notify(r idempotency.Record) {
	if s.quiet {
		return
	}
	s.noticesMu.Lock()
	defer s.noticesMu.Unlock()
	s.names = append(s.names, nameOf(r.Scope, r.Key))
	if s.sent == nil {
		s.sent = make(chan struct{})
		go s.sendNotices(s.sent)
	}
}

func (s *Store) sendNotices(sent chan struct{}) {
	defer close(sent)
	ctx := context.Background()
	for names := s.takeNotices(); len(names) > 0; names = s.takeNotices() {
		err := attempt(ctx, s.timeout, func(ctx context.Context) error {
			_, err := s.db.Exec(ctx, s.sql.notify, names)
			return err
		})
		if err != nil { // waiters look by themselves
			slog.DebugContext(ctx, "idempotency: not notified", "table", s.table, "error", err)
		}
	}
}

func (s *Store) takeNotices() []string {
	s.noticesMu.Lock()
	defer s.noticesMu.Unlock()
	names := s.names
	s.names = nil
	if len(names) == 0 {
		s.sent = nil
	}
	return names
}

// awaitNotices waits until nothing is left to send.
func (s *Store) awaitNotices() {
	s.noticesMu.Lock()
	sent := s.sent
	s.noticesMu.Unlock()
	if sent != nil {
		<-sent
	}
}
