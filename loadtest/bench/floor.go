package main

import (
	"bytes"
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/redis/go-redis/v9"

	"github.com/oncepay/oncepay/internal/programs"
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
	pending  record
}

// record is one of Redis, as the service has written it: as it is while in progress, and with an
// answer, but still in progress, so that a script completes it again and again.
type record struct{ owner, begun, answered string }

func (b *bench) prepareFloor(ctx context.Context) ([]trial, error) {
	f := &floor{bench: b, database: strings.Replace(b.system.databaseURL(), "/oncepay?", "/"+floorDatabase+"?", 1)}
	if err := f.prepareDatabase(ctx); err != nil {
		return nil, fmt.Errorf("prepare pgbench: %w", err)
	}
	client := redis.NewClient(&redis.Options{Addr: b.system.Addr("redis")})
	defer func() { _ = client.Close() }()
	hash, err := loadScript(ctx, client)
	if err != nil {
		return nil, err
	}
	if f.pending, err = anyRecord(ctx, client); err != nil {
		return nil, err
	}
	p, key := f.pending, "idempotency:bench:key-__rand_int__"
	return []trial{
		{pgbenchRow, f.orders},
		{acquireRow, func(ctx context.Context) (sample, error) {
			return f.redis(ctx, b.cfg.redisCalls, "SET", key, p.begun, "PX", "600000", "NX", "GET")
		}},
		{completeRow, func(ctx context.Context) (sample, error) {
			return f.redis(ctx, b.cfg.redisCalls/10, "EVALSHA", hash, "1", key, p.owner, p.answered, "86400000", "idempotency:changes")
		}},
	}, nil
}

func (f *floor) prepareDatabase(ctx context.Context) error {
	server, err := programs.PostgreSQL.Find()
	if err == nil {
		server, err = filepath.EvalSymlinks(server) // pgbench is beside the real one
	}
	if err != nil {
		return err
	}
	f.pgbench = filepath.Join(filepath.Dir(server), "pgbench")
	if err := execute(ctx, f.system.databaseURL(), "DROP DATABASE IF EXISTS "+floorDatabase, "CREATE DATABASE "+floorDatabase); err != nil {
		return err
	}
	migrate := exec.CommandContext(ctx, f.system.Program("oncepay"), "migrate", "up")
	migrate.Env = []string{"ENVIRONMENT=development", "DATABASE_URL=" + f.database}
	if printed, err := migrate.CombinedOutput(); err != nil {
		return fmt.Errorf("migrate: %w\n%s", err, printed)
	}
	return execute(ctx, f.database, orderSetup)
}

func execute(ctx context.Context, url string, statements ...string) error {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	for _, statement := range statements {
		if _, err := conn.Exec(ctx, statement); err != nil {
			return err
		}
	}
	return nil
}

// orders runs pgbench, which counts in whole seconds.
func (f *floor) orders(ctx context.Context) (s sample, err error) {
	f.runs++
	var answer pgbenchAnswer
	cost, err := f.system.costing(func() (int, error) {
		seconds := max(1, int(f.cfg.step.Seconds()))
		printed, err := exec.CommandContext(ctx, f.pgbench, "-n", "-M", "prepared", "-f", orderScript, "-c", strconv.Itoa(pgbenchClients), "-j", "2",
			"-T", strconv.Itoa(seconds), "-D", "n=0", "-D", fmt.Sprint("run=", f.runs), "-D", "account=00000000-0000-7000-8000-000000000000", f.database).CombinedOutput()
		if err != nil {
			return 0, fmt.Errorf("pgbench: %w\n%s", err, printed)
		}
		answer, err = parsePgbench(string(printed))
		return answer.orders, err
	})
	return sample{"rate": answer.rate, "p50": answer.latency, "PostgreSQL": cost["PostgreSQL"]}, err
}

// pgbenchAnswer is what pgbench has printed; the latency is the mean, in ms.
type pgbenchAnswer struct {
	orders        int
	rate, latency float64
}

var (
	pgbenchOrders  = regexp.MustCompile(`(?m)^number of transactions actually processed: (\d+)`)
	pgbenchFailed  = regexp.MustCompile(`(?m)^number of failed transactions: (\d+)`)
	pgbenchRate    = regexp.MustCompile(`(?m)^tps = ([\d.]+)`)
	pgbenchLatency = regexp.MustCompile(`(?m)^latency average = ([\d.]+) ms`)
)

func parsePgbench(printed string) (a pgbenchAnswer, err error) {
	var errs []error
	find := func(pattern *regexp.Regexp) float64 {
		found := pattern.FindStringSubmatch(printed)
		if found == nil {
			errs = append(errs, fmt.Errorf("pgbench printed no %s:\n%s", pattern, printed))
			return 0
		}
		value, err := strconv.ParseFloat(found[1], 64)
		errs = append(errs, err)
		return value
	}
	a = pgbenchAnswer{int(find(pgbenchOrders)), find(pgbenchRate), find(pgbenchLatency)}
	if failed := find(pgbenchFailed); failed > 0 {
		errs = append(errs, fmt.Errorf("%.0f transactions of pgbench failed", failed))
	}
	return a, errors.Join(errs...)
}

// loadScript has Redis know the script that completes a record.
func loadScript(ctx context.Context, client *redis.Client) (hash string, err error) {
	var source []byte
	for _, name := range []string{"owner.lua", "complete.lua"} {
		text, err := os.ReadFile(scripts + name)
		if err != nil {
			return "", err
		}
		source = append(source, text...)
	}
	return client.ScriptLoad(ctx, string(source)).Result()
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
	answered, err := json.Marshal(metadata)
	if err != nil {
		return record{}, err
	}
	for name := range metadata {
		if strings.HasPrefix(name, "response") {
			delete(metadata, name)
		}
	}
	begun, err := json.Marshal(metadata)
	return record{owner, string(begun) + "\n", string(answered) + "\n" + string(body)}, err
}

// redis runs redis-benchmark with keys of which there are a tenth as many as commands.
func (f *floor) redis(ctx context.Context, commands int, command ...string) (sample, error) {
	host, port, err := net.SplitHostPort(f.system.Addr("redis"))
	if err != nil {
		return nil, err
	}
	args := append([]string{"-h", host, "-p", port, "-c", strconv.Itoa(f.cfg.clients), "-n", strconv.Itoa(commands),
		"-r", strconv.Itoa(f.cfg.redisCalls / 10), "--csv"}, command...)
	s := sample{}
	cost, err := f.system.costing(func() (int, error) {
		printed, err := exec.CommandContext(ctx, "redis-benchmark", args...).Output()
		if err == nil {
			s["rate"], s["p50"], s["p99"], err = parseRedisBenchmark(string(printed))
		}
		return commands, err
	})
	s["Redis"] = cost["Redis"]
	return s, err
}

// parseRedisBenchmark reads the rate a second, and latencies in ms. What is before the figures is
// the command, which may have anything in it.
func parseRedisBenchmark(csv string) (rate, p50, p99 float64, err error) {
	cells := strings.Split(strings.TrimSuffix(strings.TrimSpace(csv), `"`), `","`)
	const figures = 7 // rps, average, minimum, p50, p95, p99, maximum
	if len(cells) < 2*figures {
		return 0, 0, 0, fmt.Errorf("redis-benchmark printed %q", csv)
	}
	var values [figures]float64
	for i, cell := range cells[len(cells)-figures:] {
		if values[i], err = strconv.ParseFloat(cell, 64); err != nil {
			return 0, 0, 0, fmt.Errorf("redis-benchmark printed %q: %w", csv, err)
		}
	}
	return values[0], values[3], values[5], nil
}

func floorTable(found results) table {
	t := table{command: ordersCommand, header: []string{"without the service", "a second", "p50 ms", "CPU µs", "of"}}
	t.add(pgbenchRow, found.of(pgbenchRow, "rate").String(), found.of(pgbenchRow, "p50").String()+" (mean)", found.of(pgbenchRow, "PostgreSQL").String(), "PostgreSQL")
	for _, row := range []string{acquireRow, completeRow} {
		t.add(row, found.of(row, "rate").String(), found.of(row, "p50").String(), found.of(row, "Redis").String(), "Redis")
	}
	return t
}
