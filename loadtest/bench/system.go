package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/redis/go-redis/v9"
	vegeta "github.com/tsenart/vegeta/v12/lib"

	"github.com/oncepay/oncepay/internal/localserver"
	"github.com/oncepay/oncepay/internal/stack"
	"github.com/oncepay/oncepay/loadtest/report"
	"github.com/oncepay/oncepay/loadtest/shop"
)

const (
	stackDir = ".stack-bench"
	// The offsets that are tried, which are above the ports that Linux gives to clients.
	firstOffset, lastOffset, offsetStep = 6600, 9000, 100
	// downTimeout bounds the removal of the stack, also after Ctrl-C.
	downTimeout = time.Minute
	apiKey      = "sk_test_demo"
	customers   = 50
	// patience is how long a request may take: longer than the service does under any load that is
	// measured.
	patience = 20 * time.Second
)

// system is a stack of this run alone, and what is connected to it.
type system struct {
	stack *stack.Stack
	db    *pgx.Conn
	redis *redis.Client
	shop  *shop.Shop
}

func (b *bench) up(ctx context.Context) error {
	fmt.Fprintln(b.out, "bringing a stack up")
	st, err := newStack()
	if err != nil {
		return err
	}
	b.system = &system{stack: st, redis: redis.NewClient(&redis.Options{Addr: st.Addr(stack.Redis)})}
	if err = st.Up(ctx); err == nil {
		b.db, err = pgx.Connect(ctx, b.databaseURL())
	}
	if err != nil {
		return fmt.Errorf("bring the stack up: %w", err)
	}
	return nil
}

func (b *bench) down(ctx context.Context) error {
	if b.system == nil {
		return nil
	}
	fmt.Fprintln(b.out, "taking the stack down")
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), downTimeout)
	defer cancel()
	if b.db != nil {
		_ = b.db.Close(ctx)
	}
	err := errors.Join(b.redis.Close(), b.stack.Down(ctx))
	b.system = nil
	return err
}

func (s *system) databaseURL() string { return stack.PostgresURL(s.stack.PostgresPrimary()) }

// newStack is one without the fault proxy, which costs as much as a replica, on ports that are
// free.
func newStack() (*stack.Stack, error) {
	var taken error
	for offset := firstOffset; offset <= lastOffset; offset += offsetStep {
		st, err := stack.New(stack.Options{Dir: stackDir, Driver: stack.Native, Direct: true, PortOffset: offset, Out: io.Discard,
			Env: []string{"RATE_LIMIT=1000000", "IDEMPOTENCY_ACCOUNT_KEYS=100000000", "IDEMPOTENCY_ACCOUNT_BYTES=100000000000"}}) // the whole load is one account's
		if err != nil {
			return nil, err
		}
		if st.Claimed() {
			return nil, fmt.Errorf("another run is on, or was killed; then: go run ./cmd/stack down --dir %s", stackDir)
		}
		if taken = checkPorts(st); taken == nil {
			return st, nil
		}
	}
	return nil, taken
}

func checkPorts(st *stack.Stack) error {
	for _, service := range st.Services() {
		for _, port := range st.Ports(service) {
			if err := localserver.CheckPort(port); err != nil {
				return err
			}
		}
	}
	return nil
}

// attack sends requests to the service: at a rate a second, or with rate 0 as many as so many
// clients get answered. It returns the rate, latencies in ms, and the CPU time that each tier used
// for each request that was answered with success.
func (b *bench) attack(ctx context.Context, what string, target vegeta.Targeter, rate int, period time.Duration) (sample, error) {
	client := shop.Client(patience)
	defer client.CloseIdleConnections()
	options := []func(*vegeta.Attacker){vegeta.Client(client)}
	if rate == 0 {
		options = append(options, vegeta.Workers(uint64(b.cfg.clients)), vegeta.MaxWorkers(uint64(b.cfg.clients)))
	}
	attacker := vegeta.NewAttacker(options...)
	defer context.AfterFunc(ctx, func() { attacker.Stop() })()
	var m vegeta.Metrics
	found, err := b.costing(func() (int, sample, error) {
		for result := range attacker.Attack(target, vegeta.Rate{Freq: rate, Per: time.Second}, period, what) {
			if result.Error != vegeta.ErrNoTargets.Error() { // that is the end, and no request
				m.Add(result)
			}
		}
		m.Close()
		answered := m.Success * float64(m.Requests)
		return int(answered), sample{"rate": m.Throughput, "answered": answered,
			"p50": report.Milliseconds(m.Latencies.P50), "p99": report.Milliseconds(m.Latencies.P99)}, ctx.Err()
	})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	if m.Success < 1 {
		b.unexpected = append(b.unexpected, fmt.Sprintf("%s: %v %.200v", what, m.StatusCodes, m.Errors))
	}
	fmt.Fprintf(b.out, "    %s: %s/s, p50 %s ms, p99 %s ms, PostgreSQL %s µs each\n", what, number(found["rate"]), number(found["p50"]), number(found["p99"]), number(found["PostgreSQL"]))
	return found, nil
}
