package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/redis/go-redis/v9"

	"github.com/oncepay/oncepay/internal/wait"
	"github.com/oncepay/oncepay/loadtest/shop"
)

const (
	// settled bounds the wait for the effects of events.
	settled = 30 * time.Second
	// sampled is how many records of Redis are measured.
	sampled = 1000
)

// sizes measures the bytes that an order, a payment and their keys take, and which commands an
// order sends to Redis.
func sizes(ctx context.Context, b *bench) (section, error) {
	s, err := b.openShop(ctx)
	if err != nil {
		return section{}, err
	}
	client := redis.NewClient(&redis.Options{Addr: b.system.Addr("redis")})
	defer func() { _ = client.Close() }()
	conn, err := pgx.Connect(ctx, b.system.databaseURL())
	if err != nil {
		return section{}, err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	m := meter{conn, client, b.cfg.sized}
	var placed []shop.Order
	if err := client.ConfigResetStat(ctx).Err(); err != nil {
		return section{}, err
	}
	order, err := m.growth(ctx, func() (err error) { placed, err = s.Place(ctx, b.cfg.sized); return err })
	if err != nil {
		return section{}, err
	}
	commands, err := client.Info(ctx, "commandstats").Result()
	if err != nil {
		return section{}, err
	}
	payment, err := m.growth(ctx, func() error {
		_, err := b.attack(ctx, "payments", s.PaymentsOf(placed), 0, settled)
		return err
	})
	if err != nil {
		return section{}, err
	}
	kept, err := m.redisSizes(ctx)
	if err != nil {
		return section{}, err
	}
	return sizesSection(b, order, payment, kept, parseCommands(commands)), nil
}

// meter measures how much n operations leave behind.
type meter struct {
	postgres *pgx.Conn
	redis    *redis.Client
	n        int
}

// growth is how many bytes each table has grown for each of n operations, with its indexes and
// before any vacuum.
func (m meter) growth(ctx context.Context, do func() error) (map[string]float64, error) {
	before, err := m.tables(ctx)
	if err == nil {
		err = do()
	}
	if err == nil {
		err = wait.For(ctx, settled, 100*time.Millisecond, m.consumed)
	}
	if err != nil {
		return nil, err
	}
	after, err := m.tables(ctx)
	grown := map[string]float64{}
	for name, bytes := range after {
		if more := bytes - before[name]; more > 0 {
			grown[name] = float64(more) / float64(m.n)
		}
	}
	return grown, err
}

func (m meter) tables(ctx context.Context) (map[string]int64, error) {
	rows, err := m.postgres.Query(ctx, "SELECT relname::text, pg_total_relation_size(oid) FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace")
	if err != nil {
		return nil, err
	}
	found := map[string]int64{}
	var name string
	var bytes int64
	_, err = pgx.ForEachRow(rows, []any{&name, &bytes}, func() error {
		found[name] = bytes
		return nil
	})
	return found, err
}

// consumed fails while events wait for their effects.
func (m meter) consumed(ctx context.Context) error {
	var done bool
	err := m.postgres.QueryRow(ctx, "SELECT min(position) >= (SELECT coalesce(max(id), 0) FROM outbox) FROM consumer_cursors").Scan(&done)
	if err == nil && !done {
		err = errors.New("not all events have had their effect")
	}
	return err
}

// redisSizes is the mean of MEMORY USAGE for each kind of record, by its answer's path.
func (m meter) redisSizes(ctx context.Context) (map[string]float64, error) {
	total, count := map[string]float64{}, map[string]float64{}
	names := m.redis.Scan(ctx, 0, "idempotency:*", sampled).Iterator()
	for names.Next(ctx) && slices.Max(append(slices.Collect(maps.Values(count)), 0)) < sampled {
		used, err := m.redis.MemoryUsage(ctx, names.Val()).Result()
		if err != nil {
			return nil, err
		}
		kind := "key of an order"
		if strings.Contains(names.Val(), ":pay-") {
			kind = "key of a card payment"
		} else if !strings.Contains(names.Val(), "-order-") {
			continue
		}
		total[kind], count[kind] = total[kind]+float64(used), count[kind]+1
	}
	if err := names.Err(); err != nil {
		return nil, err
	}
	for kind := range total {
		total[kind] /= count[kind]
	}
	return total, m.addStream(ctx, total)
}

// addStream adds the mean of an event in the stream, if there are any that no group is done with.
func (m meter) addStream(ctx context.Context, sizes map[string]float64) error {
	const stream = "oncepay:events"
	length, err := m.redis.XLen(ctx, stream).Result()
	if err != nil || length == 0 {
		return err
	}
	used, err := m.redis.MemoryUsage(ctx, stream, 0).Result()
	sizes["event in the stream"] = float64(used) / float64(length)
	return err
}

// command is what Redis itself counts of one.
type command struct {
	name   string
	calls  int
	micros float64 // all calls together
}

var commandLine = regexp.MustCompile(`(?m)^cmdstat_([^:]+):calls=(\d+),usec=(\d+)`)

func parseCommands(info string) (all []command) {
	for _, found := range commandLine.FindAllStringSubmatch(info, -1) {
		calls, _ := strconv.Atoi(found[2]) // digits
		micros, _ := strconv.ParseFloat(found[3], 64)
		all = append(all, command{found[1], calls, micros})
	}
	slices.SortFunc(all, func(a, b command) int { return b.calls - a.calls })
	return all
}

func sizesSection(b *bench, order, payment, kept map[string]float64, commands []command) section {
	run := "go run ./loadtest/bench -parts sizes"
	tables := table{command: run, header: []string{"PostgreSQL table", "bytes per order", "bytes per card payment"}}
	names := slices.Sorted(maps.Keys(order))
	for name := range payment {
		if order[name] == 0 {
			names = append(names, name)
		}
	}
	var orders, payments float64
	for _, name := range names {
		tables.add(name, number(order[name]), number(payment[name]))
		orders, payments = orders+order[name], payments+payment[name]
	}
	tables.add("all", number(orders), number(payments))
	records := table{command: run, header: []string{"in Redis", "bytes"}}
	for _, kind := range slices.Sorted(maps.Keys(kept)) {
		records.add(kind, number(kept[kind]))
	}
	calls := table{command: run, header: []string{"Redis command", "calls per order", "µs per call, by Redis itself"}}
	for _, c := range commands {
		if perOrder := float64(c.calls) / float64(b.cfg.sized); perOrder >= 0.01 {
			calls.add(strings.ToUpper(strings.ReplaceAll(c.name, "|", " ")), number(perOrder), number(c.micros/float64(c.calls)))
		}
	}
	return section{title: "Bytes and commands", text: fmt.Sprintf(`%d orders, then as many card payments, by %d clients at a time. Tables are with their indexes and before any vacuum: an order
that is paid leaves an old version behind, whose space is used again. In Redis: MEMORY USAGE, the mean.`, b.cfg.sized, shop.AtOnce),
		tables: []table{tables, records, calls}}
}
