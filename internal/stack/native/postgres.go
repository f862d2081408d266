package native

import (
	"context"
	"errors"
	"fmt"
	"syscall"

	"github.com/oncepay/oncepay/internal/localserver"
	"github.com/oncepay/oncepay/internal/stack/deployment"
	"github.com/oncepay/oncepay/internal/stack/topology"
)

// errDiverged is why the old primary stays down.
var errDiverged = errors.New("the standby has taken over, and this server may have commits that the standby does not: " +
	"`stack down` removes both")

// databaseURL is where a replica finds PostgreSQL. With a standby it names both servers, and the
// driver takes the one that accepts writes ("target_session_attrs" in the manual of libpq).
func (d *Driver) databaseURL(replica string) string {
	first := d.Via(replica, topology.Postgres)
	if !d.HasStandby() {
		return localserver.PostgresURL(first)
	}
	return localserver.PostgresURL(first+","+d.Via(replica, topology.PostgresStandby)) + "&target_session_attrs=read-write"
}

func (d *Driver) postgresConfig(name, dir string) localserver.PostgresConfig {
	return localserver.PostgresConfig{Dir: dir, Port: d.Port(name), Fsync: true, Log: d.LogPath(name)}
}

func (d *Driver) preparePostgres(ctx context.Context, dir string) (localserver.Command, error) {
	run, _, err := localserver.PostgresCommand(ctx, d.postgresConfig(topology.Postgres, dir))
	return run, err
}

func (d *Driver) prepareStandby(ctx context.Context, dir string) (localserver.Command, error) {
	run, _, err := localserver.StandbyCommand(ctx, d.postgresConfig(topology.PostgresStandby, dir), d.Via(topology.PostgresStandby, topology.Postgres))
	return run, err
}

// ensurePrimary brings up the first server, unless the standby has taken over.
func (d *Driver) ensurePrimary(ctx context.Context) error {
	if d.Promoted {
		return nil
	}
	return d.ensure(ctx, topology.Postgres)
}

// ensureStandby brings up the standby, as a copy of the primary, and then has the primary wait for
// it if commits are synchronous.
func (d *Driver) ensureStandby(ctx context.Context) error {
	if !d.HasStandby() {
		return nil
	}
	if err := d.ensure(ctx, topology.PostgresStandby); err != nil {
		return err
	}
	if d.Promoted {
		return nil
	}
	if err := localserver.AwaitStandby(ctx, d.Addr(topology.Postgres)); err != nil {
		return err
	}
	if d.Postgres != topology.SyncStandby {
		return nil
	}
	return localserver.WaitForStandbys(ctx, d.Addr(topology.Postgres))
}

// Promote ends the primary at once, so that there are never two, and makes the standby the primary.
func (d *Driver) Promote(ctx context.Context) error {
	if !d.HasStandby() || d.Promoted {
		return errors.New("this stack has no standby to promote: `stack up --postgres standby` makes one")
	}
	if err := d.Crash(ctx, topology.Postgres); err != nil {
		return fmt.Errorf("end the primary: %w", err)
	}
	if err := localserver.Promote(ctx, d.Addr(topology.PostgresStandby)); err != nil {
		return err
	}
	if d.Postgres == topology.Standby {
		d.Printf("commits that the standby had not received are lost, and Redis may still know answers to them: `stack flush redis`\n" +
			"makes PostgreSQL decide on every key\n")
	}
	return d.State.Update(func(data *deployment.StateData) { data.Promoted = true })
}

// Crash is PostgreSQL's immediate shutdown: nothing is finished and nothing written, so the next
// start recovers from the log ("Shutting Down the Server" in its manual).
func (d *Driver) Crash(ctx context.Context, name string) error {
	return d.State.Service(name).Process.Stop(ctx, syscall.SIGQUIT, deployment.StopGrace)
}
