package main

import (
	"bytes"
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/redis/go-redis/v9"

	"github.com/oncepay/oncepay/internal/programs"
	"github.com/oncepay/oncepay/internal/stack"
	"github.com/oncepay/oncepay/internal/wait"
)

// The floor is what PostgreSQL and Redis cost and reach without the service: the same statements in
// as many round trips, sent by their own benchmarks.

//go:embed order_setup.sql
var orderSetup string

const (
	orderScript = "loadtest/bench/order.sql"
	scripts     = "idempotency/redisstore/scripts/"
	// floorDatabase has no relay and no consumers.
	floorDatabase = "bench"
	// pgbenchClients are enough to use all of a small machine. Each opens a connection and prepares
	// the statements anew in every run, which more of them would make the larger part of the cost.
	pgbenchClients = 8

	pgbenchRow  = "pgbench: one order's statements"
	acquireRow  = "redis-benchmark: SET NX GET"
	completeRow = "redis-benchmark: the script that completes"
)

// floor is prepared for measurements of the servers of a stack.
type floor struct {
	*bench
	database string // its URL
	pgbench  string
	runs     int // of pgbench
}

// record is one of Redis, as the service has written it: as it is while in progress, and with an
// answer, but still in progress, so that a script completes it again and again.
type record struct{ owner, begun, answered string }

func (b *bench) prepareFloor(ctx context.Context) ([]trial, error) {
	f, err := b.openFloor(ctx)
	if err != nil {
		return nil, err
	}
	hash, err := loadScript(ctx, b.redis)
	if err != nil {
		return nil, err
	}
	p, err := anyRecord(ctx, b.redis)
	if err != nil {
		return nil, err
	}
	const key = "idempotency:bench:key-__rand_int__"
	return []trial{
		{pgbenchRow, f.orders},
		{acquireRow, func(ctx context.Context) (sample, error) {
			return f.command(ctx, b.cfg.redisCalls, "SET", key, p.begun, "PX", "600000", "NX", "GET")
		}},
		{completeRow, func(ctx context.Context) (sample, error) {
			return f.command(ctx, b.cfg.redisCalls/10, "EVALSHA", hash, "1", key, p.owner, p.answered, "86400000", "idempotency:changes")
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
	return f.costing(func() (int, sample, error) {
		return f.run(ctx, orderScript, "-c", strconv.Itoa(pgbenchClients), "-j", "2", "-T", strconv.Itoa(max(1, int(f.cfg.step.Seconds()))),
			"-D", fmt.Sprint("run=", f.runs), "-D", "account=00000000-0000-7000-8000-000000000000")
	})
}

// run has pgbench run a script, whose :n begins at 0.
func (f *floor) run(ctx context.Context, script string, args ...string) (n int, found sample, err error) {
	args = append([]string{"-n", "-M", "prepared", "-f", script, "-D", "n=0"}, append(args, f.database)...)
	printed, err := exec.CommandContext(ctx, f.pgbench, args...).CombinedOutput()
	if err != nil {
		return 0, nil, fmt.Errorf("pgbench, %s: %w\n%s", script, err, printed)
	}
	return parsePgbench(string(printed))
}

var pgbenchFigures = regexp.MustCompile(`(?s)number of transactions actually processed: (\d+).*\nnumber of failed transactions: (\d+).*` +
	`\nlatency average = ([\d.]+) ms.*\ntps = ([\d.]+)`)

// parsePgbench reads the number of transactions, the rate a second, and the mean latency in ms,
// which stands for the median.
func parsePgbench(printed string) (n int, found sample, err error) {
	figures := pgbenchFigures.FindStringSubmatch(printed)
	if figures == nil {
		return 0, nil, fmt.Errorf("pgbench printed no %s:\n%s", pgbenchFigures, printed)
	}
	if figures[2] != "0" {
		return 0, nil, fmt.Errorf("%s transactions of pgbench failed", figures[2])
	}
	var rate, latency float64
	_, err = fmt.Sscan(strings.Join(figures[1:], " "), &n, new(int), &latency, &rate)
	return n, sample{"rate": rate, "p50": latency}, err
}

// loadScript has Redis know the script that completes a record.
func loadScript(ctx context.Context, client *redis.Client) (hash string, err error) {
	owner, ownerErr := os.ReadFile(scripts + "owner.lua")
	complete, err := os.ReadFile(scripts + "complete.lua")
	if err := cmp.Or(ownerErr, err); err != nil {
		return "", err
	}
	return client.ScriptLoad(ctx, string(owner)+string(complete)).Result()
}

// anyRecord takes one that the service has written.
func anyRecord(ctx context.Context, client *redis.Client) (record, error) {
	names := client.Scan(ctx, 0, "idempotency:*", 1000).Iterator()
	for names.Next(ctx) {
		text, err := client.Get(ctx, names.Val()).Bytes()
		if err != nil {
			return record{}, err
		}
		if bytes.Contains(text, []byte(`"status":"Completed"`)) {
			return recordOf(text)
		}
	}
	return record{}, cmp.Or(names.Err(), errors.New("no record in Redis"))
}

// recordOf puts a completed record back into progress.
func recordOf(text []byte) (record, error) {
	line, body, _ := bytes.Cut(text, []byte("\n"))
	var metadata map[string]any
	if err := json.Unmarshal(line, &metadata); err != nil {
		return record{}, fmt.Errorf("read a record: %w", err)
	}
	owner, _ := metadata["owner"].(string)
	metadata["status"] = "InProgress"
	answered, answeredErr := json.Marshal(metadata)
	maps.DeleteFunc(metadata, func(name string, _ any) bool { return strings.HasPrefix(name, "response") })
	begun, err := json.Marshal(metadata)
	return record{owner, string(begun) + "\n", string(answered) + "\n" + string(body)}, cmp.Or(answeredErr, err)
}

// command runs redis-benchmark with keys of which there are a tenth as many as commands.
func (f *floor) command(ctx context.Context, commands int, command ...string) (sample, error) {
	host, port, _ := strings.Cut(f.stack.Addr(stack.Redis), ":")
	args := append([]string{"-h", host, "-p", port, "-c", strconv.Itoa(f.cfg.clients), "-n", strconv.Itoa(commands),
		"-r", strconv.Itoa(f.cfg.redisCalls / 10), "--csv"}, command...)
	return f.costing(func() (int, sample, error) {
		printed, err := exec.CommandContext(ctx, "redis-benchmark", args...).Output()
		if err != nil {
			return 0, nil, fmt.Errorf("redis-benchmark: %w", err)
		}
		found, err := parseRedisBenchmark(string(printed))
		return commands, found, err
	})
}

// parseRedisBenchmark reads the rate a second, and latencies in ms. What is before the figures is
// the command, which may have anything in it.
func parseRedisBenchmark(csv string) (sample, error) {
	cells := strings.Split(strings.TrimSuffix(strings.TrimSpace(csv), `"`), `","`)
	figures := []string{"rate", "average", "minimum", "p50", "p95", "p99", "maximum"}
	if len(cells) < 2*len(figures) {
		return nil, fmt.Errorf("redis-benchmark printed %q", csv)
	}
	s := sample{}
	for i, cell := range cells[len(cells)-len(figures):] {
		value, err := strconv.ParseFloat(cell, 64)
		if err != nil {
			return nil, fmt.Errorf("redis-benchmark printed %q: %w", csv, err)
		}
		s[figures[i]] = value
	}
	return s, nil
}
