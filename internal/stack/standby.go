package stack

import (
	"context"
	"errors"
	"fmt"
	"syscall"

	"github.com/oncepay/oncepay/internal/localserver"
)

// The kinds of PostgreSQL that a stack may have besides Single.
const (
	// Standby is a primary and a hot standby that follows it asynchronously: a failover loses the
	// commits that had not arrived.
	Standby = "standby"
	// SyncStandby answers a commit only when the standby has applied it
	// (synchronous_commit=remote_apply): a failover loses nothing that was answered, but without
	// the standby nothing is committed.
	SyncStandby = "sync-standby"
)

// errDiverged is why the old primary stays down.
var errDiverged = errors.New("the standby has taken over, and this server may have commits that the standby does not: " +
	"`stack down` removes both")

func (s *Stack) hasStandby() bool { return s.state.data.Postgres != "" }

// PostgresPrimary is the address (host:port) of the PostgreSQL that takes writes: the first one, or
// the promoted standby.
func (s *Stack) PostgresPrimary() string {
	if s.state.data.Promoted {
		return s.addr(PostgresStandby)
	}
	return s.addr(Postgres)
}

// databaseURL is where a replica finds PostgreSQL. With a standby it names both servers, and the
// driver takes the one that accepts writes ("target_session_attrs" in the manual of libpq).
func (s *Stack) databaseURL(replica string) string {
	first := s.via(replica, Postgres)
	if !s.hasStandby() {
		return localserver.PostgresURL(first)
	}
	return localserver.PostgresURL(first+","+s.via(replica, PostgresStandby)) + "&target_session_attrs=read-write"
}

// ensurePrimary brings up the first server, unless the standby has taken over.
func (n *native) ensurePrimary(ctx context.Context) error {
	if n.state.data.Promoted {
		return nil
	}
	return n.ensure(ctx, Postgres)
}

// ensureStandby brings up the standby, as a copy of the primary, and then has the primary wait for
// it if commits are synchronous.
func (n *native) ensureStandby(ctx context.Context) error {
	if !n.hasStandby() {
		return nil
	}
	if err := n.ensure(ctx, PostgresStandby); err != nil {
		return err
	}
	if n.state.data.Promoted {
		return nil
	}
	if err := localserver.AwaitStandby(ctx, n.addr(Postgres)); err != nil {
		return err
	}
	if n.state.data.Postgres != SyncStandby {
		return nil
	}
	return localserver.WaitForStandbys(ctx, n.addr(Postgres))
}

// promote ends the primary at once, so that there are never two, and makes the standby the primary.
func promote(ctx context.Context, s *Stack, _ []string) error {
	if !s.hasStandby() || s.state.data.Promoted {
		return errors.New("this stack has no standby to promote: `stack up --postgres standby` makes one")
	}
	if err := s.state.service(Postgres).Process.Stop(ctx, syscall.SIGQUIT, stopGrace); err != nil {
		return fmt.Errorf("end the primary: %w", err)
	}
	if err := localserver.Promote(ctx, s.addr(PostgresStandby)); err != nil {
		return err
	}
	if s.state.data.Postgres == Standby {
		s.printf("commits that the standby had not received are lost, and Redis may still know answers to them: `stack flush redis`\n" +
			"makes PostgreSQL decide on every key\n")
	}
	return s.state.update(func(d *stateData) { d.Promoted = true })
}
