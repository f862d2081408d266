package localserver

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"syscall"

	"github.com/jackc/pgx/v5"

	"github.com/oncepay/oncepay/internal/programs"
)

// pgbouncerConfig is pgbouncer.ini, for the server's host and port, the pool mode, and our port.
// What it does not name has PgBouncer's default, except the wait after a failed login, which makes
// an outage longer.
const pgbouncerConfig = `[databases]
* = host=%s port=%s
[pgbouncer]
pool_mode = %s
listen_addr = 127.0.0.1
listen_port = %d
unix_socket_dir =
auth_type = plain
auth_file = users.txt
admin_users = ` + databaseName + `
server_login_retry = 1
max_client_conn = 400
`

// pgbouncerUsers are those of the stack and of tests, whose name is the password.
const pgbouncerUsers = `"` + databaseName + `" "` + databaseName + `"
"` + ServiceRole + `" "` + ServicePassword + `"
"pgtdbuser" "pgtdbpass"
`

// PgBouncer is a pooler in front of the PostgreSQL at an address (host:port). The mode of its pool
// is "transaction" or "session". Command writes its configuration anew.
func PgBouncer(server, mode string) Kind {
	return Kind{
		Program: programs.PgBouncer, URL: PostgresURL, Probe: func(ctx context.Context, addr string) error {
			return AskPgBouncer(ctx, addr, "SHOW VERSION")
		},
		name: "pgbouncer", content: server + mode, stop: syscall.SIGINT, death: syscall.SIGKILL,
		args: func(_ context.Context, cfg Config, run Command) ([]string, error) {
			host, port, err := net.SplitHostPort(server)
			for file, text := range map[string]string{
				"pgbouncer.ini": fmt.Sprintf(pgbouncerConfig, host, port, mode, cfg.Port), "users.txt": pgbouncerUsers,
			} {
				path := filepath.Join(run.Dir, file)
				err = errors.Join(err, os.WriteFile(path, []byte(text), 0o600), own(path, run.User))
			}
			return []string{filepath.Join(run.Dir, "pgbouncer.ini")}, err
		},
	}
}

// AskPgBouncer sends commands to the console of the PgBouncer at an address, such as "PAUSE".
func AskPgBouncer(ctx context.Context, addr string, commands ...string) error {
	conn, err := pgx.Connect(ctx, urlOf(databaseName, databaseName, addr, "pgbouncer")+"&default_query_exec_mode=simple_protocol")
	if err != nil {
		return fmt.Errorf("connect to PgBouncer at %s: %w", addr, err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	for _, command := range commands {
		if _, err := conn.PgConn().Exec(ctx, command).ReadAll(); err != nil {
			return fmt.Errorf("%s: %w", command, err)
		}
	}
	return nil
}
