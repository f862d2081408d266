package main

import (
	"context"
	_ "embed"
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/oncepay/oncepay/internal/programs"
	"github.com/oncepay/oncepay/internal/wait"
)

// The floor is what PostgreSQL costs and reaches without the service: the same statements in as
// many round trips, sent by pgbench.

//go:embed order.sql
var orderScript string

//go:embed order_setup.sql
var orderSetup string

const (
	// floorDatabase has no relay and no consumers.
	floorDatabase = "bench"
	// pgbenchClients are enough to use all of a small machine. Each opens a connection and prepares
	// the statements anew in every run, which more of them would make the larger part of the cost.
	pgbenchClients = 8
)

// pgbenchFigures is what pgbench prints. Its mean latency stands for the median.
var pgbenchFigures = regexp.MustCompile(`(?s)number of transactions actually processed: (?P<answered>\d+).*\nnumber of failed transactions: 0 .*` +
	`\nlatency average = (?P<p50>[\d.]+) ms.*\ntps = (?P<rate>[\d.]+)`)

func figuresOf(printed []byte) (sample, error) {
	found := pgbenchFigures.FindSubmatch(printed)
	if found == nil {
		return nil, fmt.Errorf("pgbench printed no %s:\n%s", pgbenchFigures, printed)
	}
	s := sample{}
	for i, name := range pgbenchFigures.SubexpNames()[1:] {
		s[name], _ = strconv.ParseFloat(string(found[i+1]), 64) // digits
	}
	return s, nil
}

// floor makes a database with the service's tables, for pgbench to place orders there.
func (b *bench) floor(ctx context.Context) (trial, error) {
	database := strings.Replace(b.databaseURL(), "/oncepay?", "/"+floorDatabase+"?", 1)
	server, err := programs.PostgreSQL.Find()
	if err == nil {
		server, err = filepath.EvalSymlinks(server) // pgbench is beside the real one
	}
	if err == nil {
		err = execute(ctx, b.db, "CREATE DATABASE "+floorDatabase)
	}
	if err != nil {
		return trial{}, err
	}
	migrate := exec.CommandContext(ctx, b.stack.Program("oncepay"), "migrate", "up")
	migrate.Env = []string{"ENVIRONMENT=development", "DATABASE_URL=" + database}
	if printed, err := migrate.CombinedOutput(); err != nil {
		return trial{}, fmt.Errorf("migrate: %w\n%s", err, printed)
	}
	conn, err := pgx.Connect(ctx, database)
	if err != nil {
		return trial{}, err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	runs := 0
	place := func(ctx context.Context) (sample, error) {
		runs++
		pgbench := exec.CommandContext(ctx, filepath.Join(filepath.Dir(server), "pgbench"), "-n", "-M", "prepared", "-f", "-",
			"-D", "n=0", "-D", fmt.Sprint("run=", runs), "-D", "account="+anyAccount, "-c", strconv.Itoa(pgbenchClients), "-j", "2",
			"-T", strconv.Itoa(max(1, int(b.cfg.step.Seconds()))), database)
		pgbench.Stdin = strings.NewReader(orderScript)
		return costing(b.processes, func() (sample, error) {
			printed, err := pgbench.CombinedOutput()
			if err != nil {
				return nil, fmt.Errorf("%w\n%s", err, printed)
			}
			return figuresOf(printed)
		})
	}
	return trial{"pgbench: one order's statements", place}, execute(ctx, conn, orderSetup)
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
