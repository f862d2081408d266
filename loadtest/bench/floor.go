package main

import (
	"cmp"
	"context"
	_ "embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/oncepay/oncepay/idempotency"
	"github.com/oncepay/oncepay/internal/programs"
	"github.com/oncepay/oncepay/internal/stack"
	"github.com/oncepay/oncepay/internal/wait"
)

// The floor is what PostgreSQL and Redis cost and reach without the service: the same statements in
// as many round trips, sent by their own benchmarks.

//go:embed order.sql
var orderScript string

//go:embed order_setup.sql
var orderSetup string

const (
	scripts = "idempotency/redisstore/scripts/"
	// floorDatabase has no relay and no consumers.
	floorDatabase = "bench"
	// pgbenchClients are enough to use all of a small machine. Each opens a connection and prepares
	// the statements anew in every run, which more of them would make the larger part of the cost.
	pgbenchClients = 8
)

// floors are the rows of what is measured, with the server whose CPU time counts.
var floors = map[string]string{
	"pgbench: one order's statements":            "PostgreSQL",
	"redis-benchmark: SET NX GET":                "Redis",
	"redis-benchmark: the script that completes": "Redis",
}

// What the benchmarks print. The mean latency of pgbench stands for the median.
var (
	pgbenchFigures = regexp.MustCompile(`(?s)number of transactions actually processed: (?P<answered>\d+).*\nnumber of failed transactions: 0 .*` +
		`\nlatency average = (?P<p50>[\d.]+) ms.*\ntps = (?P<rate>[\d.]+)`)
	redisFigures = regexp.MustCompile(`(?P<rate>[\d.]+) requests per second, p50=(?P<p50>[\d.]+) msec`)
)

// figures runs a program, and returns the figures that it prints, by the names in the expression.
func figures(printed *regexp.Regexp, program *exec.Cmd) (sample, error) {
	text, err := program.CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("%s: %w\n%s", program, err, text)
	}
	return figuresOf(printed, text)
}

func figuresOf(printed *regexp.Regexp, text []byte) (sample, error) {
	found := printed.FindSubmatch(text)
	if found == nil {
		return nil, fmt.Errorf("a benchmark printed no %s:\n%s", printed, text)
	}
	s := sample{}
	for i, name := range printed.SubexpNames()[1:] {
		s[name], _ = strconv.ParseFloat(string(found[i+1]), 64) // digits
	}
	return s, nil
}

// floor is a database of a stack's server with the service's tables.
type floor struct {
	*bench
	database, pgbench string // its URL, and the program
	runs              int    // of pgbench
}

func (b *bench) prepareFloor(ctx context.Context) ([]trial, error) {
	f, err := b.openFloor(ctx)
	if err != nil {
		return nil, err
	}
	reads, readsErr := os.ReadFile(scripts + "owner.lua")
	completes, completesErr := os.ReadFile(scripts + "complete.lua")
	hash, err := b.redis.ScriptLoad(ctx, string(reads)+string(completes)).Result()
	if err := cmp.Or(readsErr, completesErr, err); err != nil {
		return nil, fmt.Errorf("load the script that completes a record: %w", err)
	}
	names, err := b.redis.Keys(ctx, "idempotency:*:"+b.shop.Orders[0].Key).Result()
	if err != nil {
		return nil, err
	}
	kept, err := b.redis.Get(ctx, strings.Join(names, " ")).Bytes() // one, or there is none
	if err != nil {
		return nil, fmt.Errorf("read a record: %w", err)
	}
	owner, begun, answered, err := recordOf(kept)
	if err != nil {
		return nil, err
	}
	const key = "idempotency:bench:key-__rand_int__"
	return []trial{
		{"pgbench: one order's statements", f.orders},
		{"redis-benchmark: SET NX GET", func(ctx context.Context) (sample, error) {
			return b.command(ctx, b.cfg.redisCalls, "SET", key, begun, "PX", "600000", "NX", "GET")
		}},
		{"redis-benchmark: the script that completes", func(ctx context.Context) (sample, error) {
			return b.command(ctx, b.cfg.redisCalls/10, "EVALSHA", hash, "1", key, owner, answered, "86400000", "idempotency:changes")
		}},
	}, nil
}

// openFloor makes a database with the service's tables, and then executes statements there.
func (b *bench) openFloor(ctx context.Context, statements ...string) (*floor, error) {
	f := &floor{bench: b, database: strings.Replace(b.databaseURL(), "/oncepay?", "/"+floorDatabase+"?", 1)}
	server, err := programs.PostgreSQL.Find()
	if err == nil {
		server, err = filepath.EvalSymlinks(server) // pgbench is beside the real one
	}
	f.pgbench = filepath.Join(filepath.Dir(server), "pgbench")
	if err == nil {
		err = execute(ctx, b.db, "DROP DATABASE IF EXISTS "+floorDatabase, "CREATE DATABASE "+floorDatabase)
	}
	if err != nil {
		return nil, fmt.Errorf("prepare pgbench: %w", err)
	}
	migrate := exec.CommandContext(ctx, b.stack.Program("oncepay"), "migrate", "up")
	migrate.Env = []string{"ENVIRONMENT=development", "DATABASE_URL=" + f.database}
	if printed, err := migrate.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("migrate: %w\n%s", err, printed)
	}
	conn, err := pgx.Connect(ctx, f.database)
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	return f, execute(ctx, conn, append([]string{orderSetup}, statements...)...)
}

func execute(ctx context.Context, conn *pgx.Conn, statements ...string) error {
	for _, statement := range statements {
		if _, err := conn.Exec(ctx, statement); err != nil {
			return fmt.Errorf("%.60s…: %w", strings.TrimSpace(statement), err)
		}
	}
	return nil
}

// await asks until the answer is true.
func await(ctx context.Context, conn *pgx.Conn, limit time.Duration, question string, args ...any) error {
	return wait.For(ctx, limit, 100*time.Millisecond, func(ctx context.Context) error {
		var yes bool
		err := conn.QueryRow(ctx, question, args...).Scan(&yes)
		if err == nil && !yes {
			err = fmt.Errorf("not yet: %s", question)
		}
		return err
	})
}

// orders runs pgbench, which counts in whole seconds.
func (f *floor) orders(ctx context.Context) (sample, error) {
	f.runs++
	return f.costing(func() (sample, error) {
		return f.run(ctx, orderScript, "-c", strconv.Itoa(pgbenchClients), "-j", "2", "-T", strconv.Itoa(max(1, int(f.cfg.step.Seconds()))),
			"-D", fmt.Sprint("run=", f.runs), "-D", "account="+anyAccount)
	})
}

// run has pgbench run a script, whose :n begins at 0.
func (f *floor) run(ctx context.Context, script string, args ...string) (sample, error) {
	pgbench := exec.CommandContext(ctx, f.pgbench, append([]string{"-n", "-M", "prepared", "-f", "-", "-D", "n=0", f.database}, args...)...)
	pgbench.Stdin = strings.NewReader(script)
	return figures(pgbenchFigures, pgbench)
}

// recordOf puts a completed record, as the service has written it, back into progress: as it was
// then, and with its answer, so that a script completes it again and again.
func recordOf(kept []byte) (owner, begun, answered string, err error) {
	var r idempotency.Record
	if err := r.UnmarshalBinary(kept); err != nil {
		return "", "", "", err
	}
	answered = strings.Replace(string(kept), string(r.Status), string(idempotency.StatusInProgress), 1)
	r.Status, r.Response = idempotency.StatusInProgress, idempotency.Response{}
	pending, err := r.MarshalBinary()
	return string(r.Owner), string(pending), answered, err
}

// command runs redis-benchmark with keys of which there are a tenth as many as commands.
func (b *bench) command(ctx context.Context, commands int, command ...string) (sample, error) {
	host, port, _ := strings.Cut(b.stack.Addr(stack.Redis), ":")
	args := append([]string{"-h", host, "-p", port, "-c", strconv.Itoa(clients), "-n", strconv.Itoa(commands),
		"-r", strconv.Itoa(b.cfg.redisCalls / 10), "-q"}, command...)
	return b.costing(func() (sample, error) {
		found, err := figures(redisFigures, exec.CommandContext(ctx, "redis-benchmark", args...))
		if err == nil {
			found["answered"] = float64(commands)
		}
		return found, err
	})
}
