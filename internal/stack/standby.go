package stack

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/oncepay/oncepay/internal/localserver"
)

// errDiverged is why the old primary stays down.
var errDiverged = errors.New("the standby has taken over, and this server may have commits that it does not have: " +
	"`stack follow postgres` makes it a standby, as a new copy")

// databaseURL is where a replica finds PostgreSQL. With a standby it names both servers, and the
// driver takes the one that accepts writes ("target_session_attrs" in the manual of libpq).
func (d *nativeDriver) databaseURL(replica string) string {
	if d.IsPooled() {
		return localserver.ServiceURL(d.Via(replica, PgBouncer)) + "&default_query_exec_mode=cache_describe"
	}
	first := d.Via(replica, Postgres)
	if !d.HasStandby() {
		return localserver.ServiceURL(first)
	}
	return localserver.ServiceURL(first+","+d.Via(replica, PostgresStandby)) + "&target_session_attrs=read-write"
}

// ensureStandby brings up the standby, as a copy of the primary, and then has the primary wait for
// it if commits are synchronous.
func (d *nativeDriver) ensureStandby(ctx context.Context) error {
	if !d.HasStandby() {
		return nil
	}
	if d.Ended { // the former primary may have commits that the new one does not have
		err := os.RemoveAll(filepath.Join(d.dirOf(d.StandbyServer()), "data"))
		if err == nil {
			err = d.update(func(data *state) { data.Ended = false })
		}
		if err != nil {
			return fmt.Errorf("remove the data of %s: %w", d.StandbyServer(), err)
		}
	}
	if err := d.ensure(ctx, d.StandbyServer()); err != nil {
		return err
	}
	if err := localserver.AwaitStandby(ctx, d.PostgresPrimary()); err != nil || d.Postgres != SyncStandby {
		return err
	}
	return localserver.WaitForStandbys(ctx, d.PostgresPrimary())
}

// promote ends the primary at once, so that there are never two, and makes the standby the primary.
func (d *nativeDriver) promote(ctx context.Context) error {
	primary, standby := d.Primary(), d.StandbyServer()
	if d.Ended {
		return fmt.Errorf("%s is not a standby again yet: `stack follow postgres` makes it one", standby)
	}
	if err := localserver.PingPostgres(ctx, d.Addr(standby)); err != nil {
		return fmt.Errorf("%s does not answer: %w", standby, err)
	}
	if err := d.control(ctx, "crash", primary); err != nil {
		return fmt.Errorf("end the primary: %w", err)
	}
	if err := localserver.Promote(ctx, d.Addr(standby)); err != nil {
		return err
	}
	if err := d.update(func(data *state) { data.Promoted, data.Ended = standby, true }); err != nil || !d.IsPooled() {
		return err
	}
	if _, err := d.prepare(ctx, PgBouncer); err != nil { // writes the new primary's address
		return err
	}
	return localserver.AskPgBouncer(ctx, d.Addr(PgBouncer), "RELOAD")
}

// follow makes the former primary a standby of the new one, as a new copy.
func (d *nativeDriver) follow(ctx context.Context) error {
	if !d.Ended {
		return errors.New("no server was ended by `stack promote postgres`")
	}
	defer d.release()
	if err := d.hold(ctx, d.StandbyServer()); err != nil {
		return err
	}
	return d.ensureStandby(ctx)
}
