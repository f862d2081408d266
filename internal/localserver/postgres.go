package localserver

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/jackc/pgx/v5"

	"github.com/oncepay/oncepay/internal/programs"
	"github.com/oncepay/oncepay/internal/wait"
)

// databaseName is the database, its owner and the owner's password: demo data on a loopback port.
const databaseName = "oncepay"

// The role that serves, and its password. "oncepay migrate" makes it.
const (
	ServiceRole     = databaseName + "_service"
	ServicePassword = ServiceRole
)

// NoSync are settings for tests: commits are not safe from a power cut, and fast.
var NoSync = []string{"-c", "fsync=off", "-c", "synchronous_commit=off", "-c", "full_page_writes=off"}

// Postgres has a database and superuser "oncepay", whose password is the same.
var Postgres = Kind{
	Program: programs.PostgreSQL, Image: Image{"POSTGRES_IMAGE", "postgres:17.6", "oncepay-airgap/postgres:17"}, URL: PostgresURL, Probe: PingPostgres,
	name: "postgres", args: postgresArgs(initdb),
	stop:  syscall.SIGINT,  // fast shutdown, which does not wait for clients
	death: syscall.SIGQUIT, // immediate shutdown, which takes the backends along
}

// initdb is a script that makes the data directory $1. MD5, because the password is no secret and a
// login by SCRAM takes 4,096 hashes on either side: with the race detector those were a fifth of
// the tests of internal/postgres.
const initdb = `initdb --pgdata="$1" --username=` + databaseName + ` --pwfile=<(echo ` + databaseName + `) --auth=md5 \
  --encoding=UTF8 --locale=C --no-sync --no-instructions &&
echo "CREATE DATABASE ` + databaseName + `" | postgres --single -F -D "$1" postgres`

// postgresArgs makes the data directory by a script, unless it is there, and returns the settings
// that differ from the defaults (PostgreSQL manual, chapter 20).
func postgresArgs(script string) func(context.Context, Config, Command) ([]string, error) {
	return func(ctx context.Context, cfg Config, run Command) ([]string, error) {
		data := filepath.Join(run.Dir, "data")
		args := []string{
			"-D", data,
			"-c", "listen_addresses=127.0.0.1",
			"-c", "port=" + strconv.Itoa(cfg.Port),
			"-c", "unix_socket_directories=", // TCP only: a socket path may be too long, and we need none
			"-c", "max_connections=200", // two replicas, tests in parallel, and room for psql
			"-c", "timezone=UTC",
		}
		return append(args, cfg.Settings...), cmp.Or(makeData(ctx, script, data, run), unlock(data))
	}
}

// makeData makes a data directory unless there is one. It works beside the final place and renames,
// so that an aborted run leaves no half of one.
func makeData(ctx context.Context, script, data string, run Command) error {
	if _, err := os.Stat(filepath.Join(data, "PG_VERSION")); err == nil {
		return nil
	}
	program, err := filepath.EvalSymlinks(run.Path) // initdb and pg_basebackup are beside the real one
	stale, _ := filepath.Glob(data + ".new*")
	for _, dir := range append(stale, data) {
		err = errors.Join(err, os.RemoveAll(dir))
	}
	if err != nil {
		return fmt.Errorf("clear the data directory: %w", err)
	}
	fresh := fmt.Sprintf("%s.new-%d", data, os.Getpid()) // an aborted run's program may still be at work in its own
	cmd := exec.CommandContext(ctx, "bash", "-c", script, "bash", fresh)
	cmd.Dir, cmd.Env = run.Dir, []string{"PATH=" + filepath.Dir(program) + ":" + os.Getenv("PATH"), "LC_ALL=C"}
	cmd.SysProcAttr = sysProcAttr(run.User, syscall.SIGKILL)
	if out, err := cmd.CombinedOutput(); err != nil {
		return errors.Join(ctx.Err(), fmt.Errorf("make the data directory: %w: %s", err, out), os.RemoveAll(fresh))
	}
	return os.Rename(fresh, data)
}

// noProcess is above the largest process ID of Linux, pid_max of proc_sys_kernel(5).
const noProcess = 1<<22 + 1

// unlock lets a server start after one that was killed. The killed one may still be a zombie: in
// many containers the first process does not wait for its children. Or another process has its ID
// by now. PostgreSQL would take either for a server that uses the data, and not start. So unlock
// replaces the ID in the lock file. It keeps the rest of the file, by which PostgreSQL refuses to
// start while sessions of the killed server still run.
func unlock(data string) error {
	path := filepath.Join(data, "postmaster.pid")
	text, err := os.ReadFile(path)
	if err != nil {
		return nil // the server ended in order, or there was none
	}
	number, rest, _ := strings.Cut(string(text), "\n")
	pid, _ := strconv.Atoi(number)
	workingDir, err := handle(pid).Cwd() // a server's is its data directory; a zombie has none
	resolved, _ := filepath.EvalSymlinks(data)
	if workingDir == resolved || err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return os.WriteFile(path, fmt.Appendf(nil, "%d\n%s", noProcess, rest), 0o600)
}

// PostgresURL is the connection URL of the stack's database on a server at addr (host:port).
func PostgresURL(addr string) string { return urlOf(databaseName, databaseName, addr, databaseName) }

// ServiceURL is the same for the role that serves.
func ServiceURL(addr string) string { return urlOf(ServiceRole, ServicePassword, addr, databaseName) }

// serverURL is the connection URL of a database that every server has.
func serverURL(addr string) string { return urlOf(databaseName, databaseName, addr, "postgres") }

func urlOf(user, password, addr, database string) string {
	return "postgres://" + user + ":" + password + "@" + addr + "/" + database + "?sslmode=disable"
}

// Standby is a hot standby of the primary at an address (host:port). Its data directory is a copy
// of the primary's (pg_basebackup), made unless there is one.
func Standby(primary string) Kind {
	kind := Postgres
	kind.args = postgresArgs(`pg_basebackup --pgdata="$1" --write-recovery-conf --no-sync --checkpoint=fast \
  --dbname="` + serverURL(primary) + `"`)
	return kind
}

// PingPostgres asks whether a server answers, which a standby does without its primary, too.
func PingPostgres(ctx context.Context, addr string) error {
	ctx, cancel := context.WithTimeout(ctx, ProbeTimeout)
	defer cancel()
	return ExecPostgres(ctx, addr, "SELECT")
}

// AwaitStandby returns when a standby has applied all that the primary at addr has written, and so
// follows it.
func AwaitStandby(ctx context.Context, addr string) error {
	return AwaitPostgres(ctx, addr, "SELECT 1 / count(*) FROM pg_stat_replication WHERE replay_lsn = pg_current_wal_lsn()")
}

// WaitForStandbys makes the server at addr answer a commit only when a standby has applied it
// (PostgreSQL manual, "Synchronous Replication"). It returns when commits wait: the checkpointer
// tells the sessions to, once it has read the settings. A new session shows that they were sent to
// the checkpointer, and it reads them before a checkpoint.
func WaitForStandbys(ctx context.Context, addr string) error {
	err := ExecPostgres(ctx, addr, "ALTER SYSTEM SET synchronous_standby_names = '*'",
		"ALTER SYSTEM SET synchronous_commit = 'remote_apply'", "SELECT pg_reload_conf()")
	if err != nil {
		return err
	}
	return AwaitPostgres(ctx, addr, "SELECT 1 / (current_setting('synchronous_commit') = 'remote_apply')::int", "CHECKPOINT")
}

// Promote makes the standby at addr a primary, and returns when it takes writes.
func Promote(ctx context.Context, addr string) error {
	return ExecPostgres(ctx, addr, "SELECT pg_promote()")
}

// AwaitPostgres executes statements until none of them fails.
func AwaitPostgres(ctx context.Context, addr string, statements ...string) error {
	return wait.For(ctx, ReadyTimeout, PollInterval, func(ctx context.Context) error {
		return ExecPostgres(ctx, addr, statements...)
	})
}

// ExecPostgres executes statements over a connection of its own, as a superuser.
func ExecPostgres(ctx context.Context, addr string, statements ...string) error {
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
