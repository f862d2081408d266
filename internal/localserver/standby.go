package localserver

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"

	"github.com/jackc/pgx/v5"

	"github.com/oncepay/oncepay/internal/wait"
)

// StartStandby is [StartPostgres] for a hot standby of the primary at an address (host:port).
func StartStandby(ctx context.Context, cfg PostgresConfig, primary string) (*Server, error) {
	prepare := func(ctx context.Context, cfg PostgresConfig) (Command, bool, error) {
		return StandbyCommand(ctx, cfg, primary)
	}
	return startPostgres(ctx, cfg, prepare, PingPostgres)
}

// StandbyCommand is [PostgresCommand] for a hot standby of the primary at an address (host:port).
// Its data directory is a copy of the primary's (pg_basebackup), made unless there is one.
func StandbyCommand(ctx context.Context, cfg PostgresConfig, primary string) (run Command, temporary bool, err error) {
	return postgresCommand(ctx, cfg, func(ctx context.Context, binDir, data string) *exec.Cmd {
		return exec.CommandContext(ctx, filepath.Join(binDir, "pg_basebackup"), "--pgdata="+data, "--write-recovery-conf", "--no-sync",
			"--checkpoint=fast", "--dbname="+serverURL(primary))
	})
}

// AwaitStandby returns when a standby has applied all that the primary at addr has written, and so
// follows it.
func AwaitStandby(ctx context.Context, addr string) error {
	return wait.For(ctx, ReadyTimeout, PollInterval, func(ctx context.Context) error {
		return onServer(ctx, addr, "SELECT 1 / count(*) FROM pg_stat_replication WHERE replay_lsn = pg_current_wal_lsn()")
	})
}

// WaitForStandbys makes the server at addr answer a commit only when a standby has applied it
// (PostgreSQL manual, "Synchronous Replication"). It returns when commits wait: the checkpointer
// tells the sessions to, once it has read the settings. A new session shows that they were sent to
// the checkpointer, and it reads them before a checkpoint.
func WaitForStandbys(ctx context.Context, addr string) error {
	err := onServer(ctx, addr, "ALTER SYSTEM SET synchronous_standby_names = '*'",
		"ALTER SYSTEM SET synchronous_commit = 'remote_apply'", "SELECT pg_reload_conf()")
	if err != nil {
		return err
	}
	return wait.For(ctx, ReadyTimeout, PollInterval, func(ctx context.Context) error {
		return onServer(ctx, addr, "SELECT 1 / (current_setting('synchronous_commit') = 'remote_apply')::int", "CHECKPOINT")
	})
}

// Promote makes the standby at addr a primary, and returns when it takes writes.
func Promote(ctx context.Context, addr string) error {
	return onServer(ctx, addr, "SELECT pg_promote()")
}

func onServer(ctx context.Context, addr string, statements ...string) error {
	conn, err := pgx.Connect(ctx, serverURL(addr))
	if err != nil {
		return fmt.Errorf("connect to PostgreSQL at %s: %w", addr, err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	for _, statement := range statements {
		if _, err := conn.Exec(ctx, statement); err != nil {
			return fmt.Errorf("%s: %w", statement, err)
		}
	}
	return nil
}
