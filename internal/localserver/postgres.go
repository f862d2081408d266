package localserver

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"

	"github.com/jackc/pgx/v5"

	"github.com/oncepay/oncepay/internal/programs"
)

// databaseName is the database, its owner and the owner's password: demo data on a loopback port.
const databaseName = "oncepay"

// The role that serves, and its password. "oncepay migrate" makes it.
const (
	ServiceRole     = databaseName + "_service"
	ServicePassword = ServiceRole
)

// PostgresConfig says how StartPostgres runs a server.
type PostgresConfig struct {
	// Dir holds the data directory ("data") and the log; it is created, and a database that is
	// there is used again. Empty: a temporary directory that Stop removes.
	Dir string
	// Port to listen on at 127.0.0.1; 0 takes a free one.
	Port int
	// Fsync keeps commits safe from a power cut. Tests switch it off for speed.
	Fsync bool
	// Log is the file for the server's output; empty: postgres.log in Dir.
	Log string
	// DieWithParent stops the server when this process dies, however it dies (Linux only).
	DieWithParent bool
}

// StartPostgres starts a private PostgreSQL with a database and superuser "oncepay", whose password
// is the same, and waits until it answers. As root it runs the server as the user
// postgres or nobody; if that user cannot get at Dir, the data goes to a temporary directory, named
// in Server.DataDir, which the caller removes. On an error nothing is left running.
func StartPostgres(ctx context.Context, cfg PostgresConfig) (*Server, error) {
	return startPostgres(ctx, cfg, PostgresCommand, EnsureDatabase)
}

// startPostgres starts what prepare makes of the settings, and waits until the probe answers.
func startPostgres(ctx context.Context, cfg PostgresConfig, prepare func(context.Context, PostgresConfig) (Command, bool, error),
	probe func(ctx context.Context, addr string) error,
) (*Server, error) {
	port, err := HoldPort(cfg.Port)
	if err != nil {
		return nil, fmt.Errorf("start PostgreSQL: %w", err)
	}
	cfg.Port = port.Number
	run, temporary, err := prepare(ctx, cfg)
	if err != nil {
		port.Release()
		return nil, fmt.Errorf("prepare PostgreSQL: %w", err)
	}
	// SIGINT: fast shutdown, which does not wait for clients.
	server, err := startServer(ctx, run, port, serverKind{PostgresURL, syscall.SIGINT, probe})
	if err != nil {
		if temporary {
			_ = os.RemoveAll(run.Dir)
		}
		return nil, fmt.Errorf("start PostgreSQL: %w", err)
	}
	server.temporary = temporary && cfg.Dir == "" // with a Dir, the caller means to keep the data
	return server, nil
}

// PostgresCommand finds the program and makes the data directory, unless it is there. The port must
// not be 0. It reports whether the directory is a temporary one.
func PostgresCommand(ctx context.Context, cfg PostgresConfig) (run Command, temporary bool, err error) {
	return postgresCommand(ctx, cfg, initdb)
}

// A filler makes a data directory with a program of binDir's.
type filler func(ctx context.Context, binDir, data string) *exec.Cmd

func postgresCommand(ctx context.Context, cfg PostgresConfig, fill filler) (run Command, temporary bool, err error) {
	program, err := programs.PostgreSQL.Find()
	if err != nil {
		return run, false, err
	}
	if program, err = filepath.EvalSymlinks(program); err != nil { // the others are beside the real one
		return run, false, err
	}
	binDir := filepath.Dir(program)
	user, err := Unprivileged()
	if err != nil {
		return run, false, err
	}
	dir, temporary, err := ServerDir(cfg.Dir, "postgres", user)
	if err != nil {
		return run, false, err
	}
	if err := makeData(ctx, fill, binDir, filepath.Join(dir, "data"), user); err != nil {
		if temporary {
			_ = os.RemoveAll(dir)
		}
		return run, false, err
	}
	return Command{
		Path: program,
		Args: postgresArgs(dir, cfg.Port, cfg.Fsync),
		Env:  []string{ServerPath, "LC_ALL=C"},
		Dir:  dir, Log: logFile(cfg.Log, dir, "postgres"), User: user,
		ParentDeath: signalIf(cfg.DieWithParent, syscall.SIGQUIT), // immediate shutdown, which takes the backends along
	}, temporary, nil
}

// makeData makes a data directory unless there is one. It works beside the final place and renames,
// so that an aborted run leaves no half of one.
func makeData(ctx context.Context, fill filler, binDir, data string, user *syscall.Credential) error {
	if IsFile(filepath.Join(data, "PG_VERSION")) {
		return nil
	}
	stale, _ := filepath.Glob(data + ".new*")
	for _, dir := range append(stale, data) {
		if err := os.RemoveAll(dir); err != nil {
			return fmt.Errorf("clear the data directory: %w", err)
		}
	}
	fresh := fmt.Sprintf("%s.new-%d", data, os.Getpid()) // an aborted run's program may still be at work in its own
	cmd := fill(ctx, binDir, fresh)
	cmd.Dir, cmd.Env = filepath.Dir(data), append(os.Environ(), "LC_ALL=C")
	cmd.SysProcAttr = sysProcAttr(user, syscall.SIGKILL)
	if out, err := cmd.CombinedOutput(); err != nil {
		return errors.Join(ctx.Err(), fmt.Errorf("%s: %w: %s", filepath.Base(cmd.Path), err, out), os.RemoveAll(fresh))
	}
	return os.Rename(fresh, data)
}

// initdb reads the password from a file: the standard input may belong to another user.
func initdb(ctx context.Context, binDir, data string) *exec.Cmd {
	const script = `umask 077; echo "$3" >"$2.password" && "$1" --pgdata="$2" --pwfile="$2.password" "${@:4}"; status=$?; rm -f "$2.password"; exit $status`
	return exec.CommandContext(ctx, "bash", "-c", script, "initdb", filepath.Join(binDir, "initdb"), data, databaseName, "--username="+databaseName,
		"--auth=scram-sha-256", "--encoding=UTF8", "--locale=C", "--no-sync", "--no-instructions")
}

// postgresArgs are the settings that differ from the defaults (PostgreSQL manual, chapter 20).
func postgresArgs(dir string, port int, fsync bool) []string {
	settings := []string{
		"listen_addresses=127.0.0.1",
		"port=" + strconv.Itoa(port),
		"unix_socket_directories=", // TCP only: a socket path may be too long, and we need none
		"max_connections=200",      // two replicas, tests in parallel, and room for psql
		"timezone=UTC",
	}
	if !fsync {
		settings = append(settings, "fsync=off", "synchronous_commit=off", "full_page_writes=off")
	}
	args := []string{"-D", filepath.Join(dir, "data")}
	for _, s := range settings {
		args = append(args, "-c", s)
	}
	return args
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

// PingPostgres asks whether a server answers, which a standby does without its primary, too.
func PingPostgres(ctx context.Context, addr string) error {
	ctx, cancel := context.WithTimeout(ctx, ProbeTimeout)
	defer cancel()
	return onServer(ctx, addr, "SELECT")
}

// EnsureDatabase creates the database unless it exists.
func EnsureDatabase(ctx context.Context, addr string) error {
	ctx, cancel := context.WithTimeout(ctx, ProbeTimeout)
	defer cancel()
	conn, err := pgx.Connect(ctx, serverURL(addr))
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	var exists bool
	if err := conn.QueryRow(ctx, "SELECT EXISTS (SELECT FROM pg_database WHERE datname = $1)", databaseName).Scan(&exists); err != nil || exists {
		return err
	}
	_, err = conn.Exec(ctx, "CREATE DATABASE "+databaseName)
	return err
}
