package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/redis/go-redis/v9"
	vegeta "github.com/tsenart/vegeta/v12/lib"

	"github.com/oncepay/oncepay/internal/localserver"
	"github.com/oncepay/oncepay/internal/stack"
	"github.com/oncepay/oncepay/internal/wait"
	"github.com/oncepay/oncepay/loadtest/report"
	"github.com/oncepay/oncepay/loadtest/shop"
)

const (
	stackDir = ".stack-bench"
	// portOffset puts PostgreSQL and Redis above the ports that Linux gives to clients.
	portOffset = 6600
	// downTimeout bounds the removal of the stack, also after Ctrl-C.
	downTimeout = time.Minute
	apiKey      = "sk_test_demo"
	customers   = 50
	// clients of the service bring it to its limit.
	clients = 32
	// pace is the rate a second at which the service is measured below its limit.
	pace = 200
	// patience is how long a request may take: longer than the service does under any load that is
	// measured.
	patience = 20 * time.Second
	// awaited bounds the wait for what the service does with millions of rows.
	awaited = 10 * time.Minute

	// Answers that have a column of their own. They are counted by their status and code.
	overloaded, limited, unanswered = "503 overloaded", "429 rate_limited", "0 "
)

// tiers are the servers whose CPU time is told apart, in the order of the tables.
var tiers = []string{"replicas", "PostgreSQL", "Redis", "nginx", "provider"}

// system is a stack of this run alone, and what is connected to it.
type system struct {
	stack     *stack.Stack
	processes map[int]string // by pid, which of the tiers each belongs to
	db        *pgx.Conn
	redis     *redis.Client
	shop      *shop.Shop
}

// up brings a stack up without the fault proxy, which costs as much as a replica.
func (b *bench) up(ctx context.Context) error {
	st, err := stack.New(stack.Options{Dir: stackDir, Driver: stack.Native, Direct: true, PortOffset: portOffset,
		Env: []string{"RATE_LIMIT=1000000", "IDEMPOTENCY_ACCOUNT_KEYS=100000000", "IDEMPOTENCY_ACCOUNT_BYTES=100000000000"}}) // the whole load is one account's
	if err != nil {
		return err
	}
	if st.Claimed() {
		return fmt.Errorf("another run is on, or was killed; then: go run ./cmd/stack down --dir %s", stackDir)
	}
	b.system = &system{stack: st, processes: map[int]string{}, redis: redis.NewClient(&redis.Options{Addr: st.Addr(stack.Redis)})}
	if err = st.Up(ctx); err == nil {
		b.db, err = pgx.Connect(ctx, stack.PostgresURL(st.PostgresPrimary()))
	}
	if err == nil {
		b.shop, err = shop.Open(ctx, shop.Config{BaseURL: st.URL(), APIKey: apiKey, Name: "bench", SKUs: b.cfg.skus, Customers: customers, Orders: b.cfg.skus})
	}
	for i, services := range [][]string{stack.Replicas, {stack.Postgres}, {stack.Redis}, {stack.Nginx}, {stack.PSP}} {
		for _, service := range services {
			b.processes[st.PID(service)] = tiers[i]
		}
	}
	return err
}

// down takes the stack down, and with it what is connected.
func (b *bench) down(ctx context.Context) error {
	if b.system == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), downTimeout)
	defer cancel()
	err := b.stack.Down(ctx)
	b.system = nil
	return err
}

// attack sends requests to the service, which are to succeed: at a rate a second, or with rate 0 as
// many as so many clients get answered. It returns the figures of send, and the CPU time that each
// tier used for each request that was answered with success.
func (b *bench) attack(ctx context.Context, what string, target vegeta.Targeter, rate int, period time.Duration) (sample, error) {
	found, err := costing(b.processes, func() (sample, error) { return send(ctx, target, rate, period), ctx.Err() })
	if found["answered"] < found["requests"] {
		b.unexpected = append(b.unexpected, fmt.Errorf("%s: not all answers were those expected: %v", what, found))
	}
	return found, err
}

// send sends requests once each, as attack does. It returns how many were sent and done a second,
// how many had which answer, and latencies in ms of what was done.
func send(ctx context.Context, target vegeta.Targeter, rate int, period time.Duration) sample {
	client := shop.Client(patience)
	defer client.CloseIdleConnections()
	options := []func(*vegeta.Attacker){vegeta.Client(client)}
	if rate == 0 {
		options = append(options, vegeta.Workers(clients), vegeta.MaxWorkers(clients))
	}
	attacker := vegeta.NewAttacker(options...)
	defer context.AfterFunc(ctx, func() { attacker.Stop() })()
	found, done := sample{}, vegeta.LatencyMetrics{}
	began := time.Now()
	for result := range attacker.Attack(target, vegeta.Rate{Freq: rate, Per: time.Second}, period, "") {
		if result.Error == vegeta.ErrNoTargets.Error() {
			continue // that is the end, and no request
		}
		found["requests"]++
		if result.Code/100 == 2 {
			found["answered"]++
			done.Add(result.Latency)
		} else {
			found[fmt.Sprint(result.Code, " ", shop.ProblemCode(result.Body))]++
		}
	}
	seconds := period.Seconds()
	if rate == 0 { // the targets may have been used up before
		seconds = time.Since(began).Seconds()
	}
	found["sent"], found["rate"] = found["requests"]/seconds, found["answered"]/seconds
	found["other"] = found["requests"] - found["answered"] - found[overloaded] - found[limited] - found[unanswered]
	if found["answered"] > 0 { // nothing done has no latency
		found["p50"], found["p99"] = report.Milliseconds(done.Quantile(0.5)), report.Milliseconds(done.Quantile(0.99))
	}
	return found
}

// costing does something, and adds to its figures the CPU time in µs that each server used for each
// request that was answered.
func costing(processes map[int]string, do func() (sample, error)) (found sample, err error) {
	used, err := grown(func() (used sample, err error) {
		used = sample{}
		for pid, server := range processes {
			since, unread := localserver.CPUTime(pid)
			used[server] += float64(since.Microseconds())
			err = errors.Join(err, unread)
		}
		return used, err
	}, func() (err error) { found, err = do(); return err })
	for name, micros := range used {
		found[name] = micros / max(found["answered"], 1)
	}
	return found, err
}

// await asks the database until the answer is true.
func (s *system) await(ctx context.Context, question string) error {
	return wait.For(ctx, awaited, 100*time.Millisecond, func(ctx context.Context) error {
		var yes bool
		err := s.db.QueryRow(ctx, question).Scan(&yes)
		if err == nil && !yes {
			err = fmt.Errorf("not yet: %s", question)
		}
		return err
	})
}
