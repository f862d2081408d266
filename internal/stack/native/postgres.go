package native

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"github.com/oncepay/oncepay/internal/localserver"
	"github.com/oncepay/oncepay/internal/stack/deployment"
	"github.com/oncepay/oncepay/internal/stack/topology"
)

// errDiverged is why the old primary stays down.
var errDiverged = errors.New("the standby has taken over, and this server may have commits that the new primary does not have: " +
	"`stack follow postgres` makes it a standby, as a new copy")

// databaseURL is where a replica finds PostgreSQL. With a standby it names both servers, and the
// driver takes the one that accepts writes ("target_session_attrs" in the manual of libpq).
func (d *Driver) databaseURL(replica string) string {
	first := d.Via(replica, topology.Postgres)
	if !d.HasStandby() {
		return localserver.ServiceURL(first)
	}
	return localserver.ServiceURL(first+","+d.Via(replica, topology.PostgresStandby)) + "&target_session_attrs=read-write"
}

// postgresKind is that of a server of the pair, as it is now.
func (d *Driver) postgresKind(name string) localserver.Kind {
	if name == d.Primary() {
		return localserver.Postgres
	}
	return localserver.Standby(d.Via(name, d.Primary()))
}

// ensureStandby brings up the standby, as a copy of the primary, and then has the primary wait for
// it if commits are synchronous.
func (d *Driver) ensureStandby(ctx context.Context) error {
	if !d.HasStandby() {
		return nil
	}
	if err := d.dropDiverged(); err != nil {
		return err
	}
	if err := d.ensure(ctx, d.StandbyServer()); err != nil {
		return err
	}
	if err := localserver.AwaitStandby(ctx, d.PostgresPrimary()); err != nil || d.Postgres != topology.SyncStandby {
		return err
	}
	return localserver.WaitForStandbys(ctx, d.PostgresPrimary())
}

// dropDiverged removes the data of a former primary, which may have commits that the new one does
// not have.
func (d *Driver) dropDiverged() error {
	if !d.Ended {
		return nil
	}
	name := d.StandbyServer()
	if dir := d.State.Service(name).Dir; dir != "" {
		if err := os.RemoveAll(filepath.Join(dir, "data")); err != nil {
			return fmt.Errorf("remove the data of %s: %w", name, err)
		}
	}
	return d.State.Update(func(data *deployment.StateData) { data.Ended = false })
}

// Promote ends the primary at once, so that there are never two, and makes the standby the primary.
func (d *Driver) Promote(ctx context.Context) error {
	if !d.HasStandby() {
		return errors.New("this stack has no standby to promote: `stack up --postgres standby` makes one")
	}
	primary, standby := d.Primary(), d.StandbyServer()
	if d.Ended {
		return fmt.Errorf("%s is not a standby again yet: `stack follow postgres` makes it one", standby)
	}
	if err := localserver.PingPostgres(ctx, d.Addr(standby)); err != nil {
		return fmt.Errorf("%s does not answer: %w", standby, err)
	}
	if err := d.Crash(ctx, primary); err != nil {
		return fmt.Errorf("end the primary: %w", err)
	}
	if err := localserver.Promote(ctx, d.Addr(standby)); err != nil {
		return err
	}
	if d.Postgres == topology.Standby {
		d.Printf("commits that %s had not received are lost; the replicas log the events that tell of them\n", standby)
	}
	return d.State.Update(func(data *deployment.StateData) { data.Promoted, data.Ended = standby, true })
}

// Follow makes the former primary a standby of the new one, as a new copy.
func (d *Driver) Follow(ctx context.Context) error {
	if !d.Ended {
		return errors.New("no server was ended by `stack promote postgres`")
	}
	if err := d.hold(ctx, d.StandbyServer()); err != nil {
		return err
	}
	defer d.release()
	return d.ensureStandby(ctx)
}

// Crash is PostgreSQL's immediate shutdown: nothing is finished and nothing written, so the next
// start recovers from the log ("Shutting Down the Server" in its manual).
func (d *Driver) Crash(ctx context.Context, name string) error {
	return d.State.Service(name).Process.Stop(ctx, syscall.SIGQUIT, deployment.StopGrace)
}
