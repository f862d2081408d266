package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"

	"github.com/oncepay/oncepay/internal/wait"
	"github.com/oncepay/oncepay/loadtest/shop"
)

const (
	// fillBatches is how many statements fill each table: one for each first digit of a key, so
	// that the index of random keys grows at one place at a time.
	fillBatches = 16
	// purgeBegins is how long the purgers take at most to look for work: once a minute, with
	// jitter.
	purgeBegins = 2 * time.Minute
	// purgeEnds bounds the wait for their end, and drainEnds that for the effects of a backlog.
	purgeEnds, drainEnds = 10 * time.Minute, 10 * time.Minute
)

//go:embed millions.sql
var fillStatements string

// millions measures what an order costs when a table has millions of rows, while keys are purged,
// and how quickly a backlog of events is handled.
func millions(ctx context.Context, b *bench) (section, error) {
	s, err := b.openShop(ctx)
	if err != nil {
		return section{}, err
	}
	conn, err := pgx.Connect(ctx, b.system.databaseURL())
	if err != nil {
		return section{}, err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	f := filled{b, s, conn}
	if _, err := b.attack(ctx, "warm up", s.NewOrders(), pace, b.cfg.step); err != nil {
		return section{}, err
	}
	empty, err := f.measure(ctx, "on an empty database")
	if err != nil {
		return section{}, err
	}
	if err := f.fill(ctx); err != nil {
		return section{}, fmt.Errorf("fill the database: %w", err)
	}
	full, err := f.measure(ctx, "on a full one")
	if err != nil {
		return section{}, err
	}
	measured, took := []sample{empty, full}, time.Duration(0)
	if !b.cfg.quick { // the purgers look for work once a minute
		var purged sample
		if purged, took, err = f.purge(ctx); err != nil {
			return section{}, err
		}
		measured = append(measured, purged)
	}
	service, floor, err := f.drain(ctx)
	if err != nil {
		return section{}, err
	}
	return millionsSection(b, measured, took, service, floor), nil
}

// filled is a system whose tables are filled.
type filled struct {
	*bench
	shop *shop.Shop
	conn *pgx.Conn
}

func (f filled) orders() int  { return f.cfg.kept * 1000 }
func (f filled) keys() int    { return 2 * f.orders() }
func (f filled) expired() int { return f.orders() / 5 }
func (f filled) events() int  { return f.orders() / 5 }

func (f filled) measure(ctx context.Context, what string) (sample, error) {
	found, err := f.attack(ctx, what, f.shop.NewOrders(), pace, f.cfg.window)
	if err == nil {
		fmt.Fprintf(f.out, "  %s: p50 %s ms, p99 %s ms, PostgreSQL %s µs an order\n", what, number(found["p50"]), number(found["p99"]), number(found["PostgreSQL"]))
	}
	return found, err
}

// statement is one of millions.sql, whose parameters are replaced.
func statement(name string, values ...string) string {
	_, text, _ := strings.Cut(fillStatements, "-- "+name+"\n")
	text, _, _ = strings.Cut(text, ";")
	return strings.NewReplacer(values...).Replace(text)
}

// fill inserts rows as orders of many days have left them.
func (f filled) fill(ctx context.Context) error {
	// Constraints were checked when such orders were placed; and a loss of this database does no
	// harm.
	if err := f.execute(ctx, "SET session_replication_role = replica", "SET synchronous_commit = off"); err != nil {
		return err
	}
	for batch := range fillBatches {
		values := []string{":customer", f.shop.Customers[0], ":batch", fmt.Sprint(batch),
			":first_order", fmt.Sprint(f.orders() * batch / fillBatches), ":last_order", fmt.Sprint(f.orders()*(batch+1)/fillBatches - 1),
			":first_key", fmt.Sprint(f.keys() * batch / fillBatches), ":last_key", fmt.Sprint(f.keys()*(batch+1)/fillBatches - 1)}
		for _, name := range []string{"orders", "items", "keys"} {
			if err := f.execute(ctx, statement(name, values...)); err != nil {
				return err
			}
		}
		fmt.Fprintf(f.out, "  %s orders, %s keys\n", number(float64(f.orders()*(batch+1)/fillBatches)), number(float64(f.keys()*(batch+1)/fillBatches)))
	}
	// What autovacuum has long done when that many orders have come one by one.
	return f.execute(ctx, "VACUUM (ANALYZE) orders, order_items, idempotency_keys", "CHECKPOINT")
}

func (f filled) execute(ctx context.Context, statements ...string) error {
	for _, statement := range statements {
		if _, err := f.conn.Exec(ctx, statement); err != nil {
			return fmt.Errorf("%.60s…: %w", strings.TrimSpace(statement), err)
		}
	}
	return nil
}

// purge measures orders while the purgers delete keys, and for how long they do.
func (f filled) purge(ctx context.Context) (orders sample, took time.Duration, err error) {
	if err := f.execute(ctx, statement("expired", ":customer", f.shop.Customers[0], ":last_key", fmt.Sprint(f.expired()))); err != nil {
		return nil, 0, err
	}
	began, ended := time.Now(), make(chan error, 1)
	if err := f.await(ctx, purgeBegins, "SELECT pg_stat_get_tuples_deleted('idempotency_keys'::regclass) > 0"); err != nil {
		return nil, 0, fmt.Errorf("wait for the purgers: %w", err)
	}
	fmt.Fprintf(f.out, "  %s keys have expired; the purgers began after %.0f s\n", number(float64(f.expired())), time.Since(began).Seconds())
	began = time.Now()
	go func() {
		err := f.await(ctx, purgeEnds, "SELECT NOT EXISTS (SELECT FROM idempotency_keys WHERE status <> 'in_progress' AND expires_at < now())")
		took = time.Since(began)
		ended <- err
	}()
	orders, err = f.measure(ctx, "while keys are purged")
	err = errors.Join(err, <-ended)
	fmt.Fprintf(f.out, "  which took %.0f s\n", took.Seconds())
	return orders, took, err
}

// await asks until the answer is true.
func (f filled) await(ctx context.Context, limit time.Duration, question string, args ...any) error {
	return wait.For(ctx, limit, 100*time.Millisecond, func(ctx context.Context) error {
		var yes bool
		err := f.conn.QueryRow(ctx, question, args...).Scan(&yes)
		if err == nil && !yes {
			err = fmt.Errorf("not yet: %s", question)
		}
		return err
	})
}

// drained is how quickly a backlog was published and had its effects, in events a second, and what
// it cost PostgreSQL, in µs an event.
type drained struct{ published, handled, cost float64 }

// drain has the service handle a backlog that comes at once, and then pgbench, by the same
// statements on a copy.
func (f filled) drain(ctx context.Context) (service, floor drained, err error) {
	var last, confirmations, notices int64
	if err := f.conn.QueryRow(ctx, "SELECT coalesce(max(id), 0) FROM order_confirmations").Scan(&confirmations); err != nil {
		return service, floor, err
	}
	if err := f.conn.QueryRow(ctx, "SELECT coalesce(max(id), 0) FROM warehouse_notices").Scan(&notices); err != nil {
		return service, floor, err
	}
	if err := f.execute(ctx, statement("backlog", ":account", anyAccount, ":last", fmt.Sprint(f.events()))); err != nil {
		return service, floor, err
	}
	if err := f.conn.QueryRow(ctx, "SELECT max(id) FROM outbox").Scan(&last); err != nil {
		return service, floor, err
	}
	began := time.Now()
	cost, err := f.system.costing(func() (int, error) {
		if err := f.await(ctx, drainEnds, "SELECT position >= $1 FROM outbox_cursor", last); err != nil {
			return 0, err
		}
		service.published = float64(f.events()) / time.Since(began).Seconds()
		err := f.await(ctx, drainEnds, `SELECT (SELECT max(id) >= $1 FROM order_confirmations) AND (SELECT max(id) >= $2 FROM warehouse_notices)`,
			confirmations+int64(f.events()), notices+int64(f.events()/2))
		service.handled = float64(f.events()) / time.Since(began).Seconds()
		return f.events(), err
	})
	service.cost = cost["PostgreSQL"]
	fmt.Fprintf(f.out, "  a backlog of %d events: %s/s published, %s/s handled\n", f.events(), number(service.published), number(service.handled))
	if err == nil {
		floor, err = f.drainFloor(ctx)
	}
	return service, floor, err
}

const (
	// anyAccount is that of the events of a backlog, which nobody looks up.
	anyAccount = "00000000-0000-7000-8000-000000000000"
	// The service's batches: internal/outbox has them, which load tests do not import.
	relayBatch, consumerBatch = 1000, 500
)

// drainFloor has pgbench do what a relay and the three consumer groups do with PostgreSQL, side by
// side, with arrays that each statement reads itself.
func (f filled) drainFloor(ctx context.Context) (found drained, err error) {
	fl := &floor{bench: f.bench, database: strings.Replace(f.system.databaseURL(), "/oncepay?", "/"+floorDatabase+"?", 1)}
	if err := fl.prepareDatabase(ctx); err != nil {
		return found, fmt.Errorf("prepare pgbench: %w", err)
	}
	if err := execute(ctx, fl.database, statement("backlog", ":account", anyAccount, ":last", fmt.Sprint(f.events())),
		"UPDATE outbox_cursor SET owner = '"+anyAccount+"', position = 0", "VACUUM (ANALYZE) outbox"); err != nil {
		return found, err
	}
	scripts, err := drainScripts()
	if err != nil {
		return found, err
	}
	began := time.Now()
	cost, err := f.system.costing(func() (int, error) {
		var group errgroup.Group
		for name, script := range scripts {
			group.Go(func() error {
				path := filepath.Join(f.bin, name+".sql")
				if err := os.WriteFile(path, []byte(script.text), 0o600); err != nil {
					return err
				}
				printed, err := exec.CommandContext(ctx, fl.pgbench, "-n", "-M", "prepared", "-f", path, "-c", "1",
					"-t", fmt.Sprint(max(1, f.events()/script.batch)), "-D", "n=0", fl.database).CombinedOutput()
				if err != nil {
					return fmt.Errorf("pgbench, %s: %w\n%s", name, err, printed)
				}
				if name == "relay" {
					found.published = float64(f.events()) / time.Since(began).Seconds()
				}
				_, err = parsePgbench(string(printed))
				return err
			})
		}
		return f.events(), group.Wait()
	})
	found.handled, found.cost = float64(f.events())/time.Since(began).Seconds(), cost["PostgreSQL"]
	fmt.Fprintf(f.out, "  pgbench: %s/s published, %s/s handled\n", number(found.published), number(found.handled))
	return found, err
}

// script is one of pgbench, each of whose transactions takes so many positions of the outbox.
type script struct {
	text  string
	batch int
}

// drainScripts are made of the service's own queries.
func drainScripts() (map[string]script, error) {
	queries := ""
	files, err := filepath.Glob("sql/queries/*.sql")
	if err != nil {
		return nil, err
	}
	for _, path := range files {
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		queries += string(text) + "\n"
	}
	relay, err := pgbenchOf(queries, map[string]string{
		"after": ":n - " + fmt.Sprint(relayBatch), "last": "2000000000", "batch_size": fmt.Sprint(relayBatch),
		"owner": "'" + anyAccount + "'", "before": ":n - " + fmt.Sprint(relayBatch), "position": ":n", "lease_seconds": "10",
	}, "EventsBetween", "AdvanceOutbox")
	if err != nil {
		return nil, err
	}
	all := map[string]script{"relay": {fmt.Sprintf("\\set n :n + %d\n", relayBatch) + relay, relayBatch}}
	for name, consumer := range map[string]struct{ query, group, event string }{
		"confirmations": {"ConfirmOrders", "order-confirmations", "order.placed"},
		"notices":       {"NoticeWarehouse", "warehouse-notices", "payment.succeeded"},
		"receipts":      {"ConfirmOrders", "payment-confirmations", "payment.succeeded"},
	} {
		column := func(name string) string {
			return fmt.Sprintf("(SELECT array_agg(%s ORDER BY id) FROM outbox WHERE id > :n - %d AND id <= :n AND type = '%s')", name, 2*consumerBatch, consumer.event)
		}
		text, err := pgbenchOf(queries, map[string]string{"consumer": "'" + consumer.group + "'", "positions": column("id"),
			"event_ids": column("event_id"), "types": "ARRAY['" + consumer.event + "']", "by_mail": "true"}, consumer.query)
		if err != nil {
			return nil, err
		}
		all[name] = script{fmt.Sprintf("\\set n :n + %d\n", 2*consumerBatch) + text, 2 * consumerBatch}
	}
	return all, nil
}

var parameter = regexp.MustCompile(`@(\w+)`)

// pgbenchOf takes queries of sqlc by their names, with values in the place of their parameters.
func pgbenchOf(queries string, values map[string]string, names ...string) (string, error) {
	var script strings.Builder
	for _, name := range names {
		_, text, found := strings.Cut(queries, "-- name: "+name+" ")
		_, text, _ = strings.Cut(text, "\n")
		text, _, _ = strings.Cut(text, ";")
		if !found {
			return "", fmt.Errorf("there is no query %s", name)
		}
		script.WriteString(parameter.ReplaceAllStringFunc(text, func(p string) string {
			value, known := values[p[1:]]
			found = found && known
			return "(" + value + ")"
		}) + ";\n")
		if !found {
			return "", fmt.Errorf("query %s has other parameters", name)
		}
	}
	return script.String(), nil
}

func millionsSection(b *bench, orders []sample, purge time.Duration, service, floor drained) section {
	f := filled{bench: b}
	command := "go run ./loadtest/bench -parts millions"
	s := section{title: "Millions of rows", text: fmt.Sprintf(`New orders at %d/s for %s each: on an empty database; with %s orders and %s keys, which statements have inserted;
and, unless the run is quick, while %s keys that have expired are purged, for %.0f s. Then %s events come at once, half of them orders that were
placed and half payments that succeeded, while nothing else is asked of the service. pgbench sends the statements of the
relay and of the three consumer groups, in batches of the same size and side by side, on a database without the service. It does
not publish the events, which the service does on the same cores.`,
		pace, b.cfg.window, number(float64(f.orders())), number(float64(f.keys())), number(float64(f.expired())), purge.Seconds(), number(float64(f.events())))}
	latency := table{command: command, header: []string{fmt.Sprintf("orders, %d/s", pace), "p50 ms", "p99 ms", "PostgreSQL µs an order", "p50 ÷ empty's", "p99 ÷ full's"}}
	for i, o := range orders {
		latency.add([]string{"empty", "full", "full, keys are purged"}[i], number(o["p50"]), number(o["p99"]), number(o["PostgreSQL"]), number(o["p50"]/orders[0]["p50"]), number(o["p99"]/orders[1]["p99"]))
	}
	backlog := table{command: command, header: []string{"a backlog", "published, events/s", "handled, events/s", "PostgreSQL µs an event"}}
	for _, row := range []struct {
		name string
		drained
	}{{"the service", service}, {"pgbench", floor}} {
		backlog.add(row.name, number(row.published), number(row.handled), number(row.cost))
	}
	backlog.add("ratio", number(service.published/floor.published), number(service.handled/floor.handled), number(service.cost/floor.cost))
	s.tables = []table{latency, backlog}
	if purge > 0 {
		s.text += fmt.Sprintf("\nThe purgers of both replicas deleted %s keys a second.", number(float64(f.expired())/purge.Seconds()))
	}
	return s
}
