// Package nemesis hurts a running stack in the ways that production does, one or two at a time, on a schedule that follows from a
// seed, and heals it again.
package nemesis

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/redis/go-redis/v9"

	"github.com/oncepay/oncepay/internal/stack"
)

// Lease is what the campaign's replicas are started with: short, because pauses have to outlast it.
const Lease = 3 * time.Second

const (
	// shortest and longest hold of a fault.
	shortHold, longHold = time.Second, 4 * time.Second
	// pastLease is how long a process is paused so that its keys are taken over.
	pastLease = Lease + 2*time.Second
	// fireTimeout is how long an armed failpoint may wait for a request to reach it.
	fireTimeout = 6 * time.Second
	// tick is how often a failpoint is looked after.
	tick = 50 * time.Millisecond
	// opsTimeout bounds a call to an operations port.
	opsTimeout = time.Second
)

// Target is what is hurt.
type Target struct {
	Stack *stack.Stack
	Ops   map[string]string // operations ports of the replicas, host:port
}

// A Fault is one injury. Inject and Heal follow each other; a fault is used once.
type Fault struct {
	Name   string
	Kind   string // the nemesis: faults of a kind count together
	Hold   time.Duration
	inject func(context.Context) error
	heal   func(context.Context) error
	rank   int    // lower ones are healed first: a replica needs its stores
	victim string // the service that can't take a second injury; empty: none
	needs  bool   // requests that get somewhere, or it won't happen: it goes first
}

// Inject hurts.
func (f *Fault) Inject(ctx context.Context) error { return wrap("inject "+f.Name, f.inject(ctx)) }

// Heal ends it. It may be called again.
func (f *Fault) Heal(ctx context.Context) error { return wrap("heal "+f.Name, f.heal(ctx)) }

// Rank orders the healing of several faults.
func (f *Fault) Rank() int { return f.rank }

func wrap(doing string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", doing, err)
}

// ErrNotFired says that no request came by an armed failpoint: nothing was hurt.
var ErrNotFired = errors.New("no request reached it in time")

// Scheduler draws faults. Not safe for concurrent use: a stack takes one command at a time.
type Scheduler struct {
	target Target
	random *rand.Rand
	bag    []func() *Fault // what was not drawn in this round
}

// NewScheduler draws by the seed.
func NewScheduler(target Target, seed uint64) *Scheduler {
	return &Scheduler{target: target, random: rand.New(rand.NewPCG(seed, 7))}
}

// Next draws a fault: each kind once, in random order, before any comes again.
func (s *Scheduler) Next() *Fault {
	if len(s.bag) == 0 {
		s.bag = s.all()
		s.random.Shuffle(len(s.bag), func(i, j int) { s.bag[i], s.bag[j] = s.bag[j], s.bag[i] })
	}
	draw := s.bag[0]
	s.bag = s.bag[1:]
	f := draw()
	if f.Hold == 0 {
		f.Hold = shortHold + time.Duration(s.random.Int64N(int64(longHold-shortHold)))
	}
	return f
}

// Draw gives a fault, and now and then a second one beside it that hurts somebody else. They are to be injected in this order.
func (s *Scheduler) Draw() []*Fault {
	faults := []*Fault{s.Next()}
	if s.random.IntN(3) != 0 {
		return faults
	}
	second := s.Next()
	if second.victim != "" && second.victim == faults[0].victim {
		s.bag = append(s.bag, func() *Fault { return second }) // later, then
		return faults
	}
	faults = append(faults, second)
	slices.SortStableFunc(faults, func(a, b *Fault) int { return cmp.Compare(order(a), order(b)) })
	return faults
}

func order(f *Fault) int {
	if f.needs {
		return 0
	}
	return 1
}

// Pause draws the time between two faults.
func (s *Scheduler) Pause(shortest, longest time.Duration) time.Duration {
	return shortest + time.Duration(s.random.Int64N(int64(longest-shortest)))
}

func (s *Scheduler) replica() string { return stack.Replicas[s.random.IntN(len(stack.Replicas))] }

func (s *Scheduler) all() []func() *Fault {
	list := []func() *Fault{
		s.kill, s.pauseReplica, s.pausePoint,
		func() *Fault { return s.process("redis kill", "kill", stack.Redis, "start") },
		func() *Fault { return s.process("redis pause", "pause", stack.Redis, "resume") },
		func() *Fault { return s.process("provider kill", "kill", stack.PSP, "start") },
		func() *Fault { return s.process("provider pause", "pause", stack.PSP, "resume") },
		func() *Fault { return s.process("postgres crash", "crash", stack.Postgres, "start") },
		func() *Fault { return s.redis("redis flush", "FLUSHALL") },
		func() *Fault { return s.redis("redis script flush", "SCRIPT", "FLUSH") },
		s.outOfMemory, s.postgresGone, s.lockTable,
		func() *Fault { return s.partition(s.replica(), stack.Redis) },
		func() *Fault { return s.partition(stack.Nginx, s.replica()) },
		s.slow, s.cutNginx, s.cutInside,
	}
	for _, point := range []string{"after-acquire", "before-provider", "after-provider", "before-commit", "after-commit", "before-complete"} {
		list = append(list, func() *Fault { return s.diePoint(point) })
	}
	return list
}

func (s *Scheduler) do(verb string, args ...string) func(context.Context) error {
	return func(ctx context.Context) error { return s.target.Stack.Do(ctx, verb, args...) }
}

func nothing(context.Context) error { return nil }

func (s *Scheduler) process(kind, hurt, service, heal string) *Fault {
	return &Fault{Name: kind, Kind: kind, victim: service, inject: s.do(hurt, service), heal: s.do(heal, service)}
}

func (s *Scheduler) kill() *Fault {
	r := s.replica()
	return &Fault{Name: "kill " + r, Kind: "replica kill", rank: 1, victim: r, inject: s.do("kill", r), heal: s.do("start", r)}
}

func (s *Scheduler) pauseReplica() *Fault {
	r := s.replica()
	return &Fault{Name: "pause " + r + " past its lease", Kind: "replica pause", Hold: pastLease, rank: 1, victim: r, inject: s.do("pause", r), heal: s.do("resume", r)}
}

// diePoint has a replica die at an instruction.
func (s *Scheduler) diePoint(point string) *Fault {
	r, skip := s.replica(), s.random.IntN(20)
	if point == "before-provider" || point == "after-provider" {
		skip = s.random.IntN(5) // rarer
	}
	return &Fault{Name: "kill " + r + " " + point, Kind: "kill " + point, rank: 1, victim: r, needs: true,
		inject: func(ctx context.Context) error {
			if err := s.arm(ctx, r, fmt.Sprintf("%s?skip=%d", point, skip)); err != nil {
				return err
			}
			return until(ctx, func() bool { return !s.lives(ctx, r) })
		},
		heal: func(ctx context.Context) error {
			_ = s.ops(ctx, http.MethodDelete, r, "/failpoints") // a dead replica has none armed
			return s.target.Stack.Do(ctx, "start", r)
		}}
}

// pausePoint has one request stop at an instruction, past its lease, while the replica goes on.
func (s *Scheduler) pausePoint() *Fault {
	points := []string{"after-acquire", "before-provider", "after-provider", "before-commit", "after-commit", "before-complete"}
	r, point := s.replica(), points[s.random.IntN(len(points))]
	return &Fault{Name: "pause a request of " + r + " " + point, Kind: "request pause", Hold: pastLease, victim: r, needs: true,
		inject: func(ctx context.Context) error {
			if err := s.arm(ctx, r, point+"?pause="+pastLease.String()); err != nil {
				return err
			}
			return until(ctx, func() bool { return s.ops(ctx, http.MethodGet, r, "/failpoints/"+point) != nil })
		},
		heal: func(ctx context.Context) error { return s.ops(ctx, http.MethodDelete, r, "/failpoints") }}
}

func (s *Scheduler) arm(ctx context.Context, replica, point string) error {
	return s.ops(ctx, http.MethodPost, replica, "/failpoints/"+point)
}

func (s *Scheduler) ops(ctx context.Context, method, replica, path string) error {
	ctx, cancel := context.WithTimeout(ctx, opsTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, method, "http://"+s.target.Ops[replica]+path, http.NoBody)
	if err != nil {
		return err
	}
	request.Close = true
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	if answer.StatusCode != http.StatusNoContent {
		err = fmt.Errorf("the operations port answers %s: was it built with failpoints?", answer.Status)
	}
	return errors.Join(err, answer.Body.Close())
}

// until waits for a failpoint to fire.
func until(ctx context.Context, fired func() bool) error {
	for deadline := time.After(fireTimeout); !fired(); {
		select {
		case <-time.After(tick):
		case <-deadline:
			return ErrNotFired
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// lives asks the operations port, which is there as long as the process is.
func (s *Scheduler) lives(ctx context.Context, replica string) bool {
	conn, err := (&net.Dialer{Timeout: opsTimeout}).DialContext(ctx, "tcp", s.target.Ops[replica])
	if err != nil {
		return false
	}
	_ = conn.Close()
	return true
}

func (s *Scheduler) withRedis(ctx context.Context, command ...any) error {
	client := redis.NewClient(&redis.Options{Addr: s.target.Stack.Addr(stack.Redis)})
	defer func() { _ = client.Close() }()
	return client.Do(ctx, command...).Err()
}

func (s *Scheduler) redis(kind string, command ...any) *Fault {
	return &Fault{Name: kind, Kind: kind, Hold: shortHold, victim: stack.Redis, heal: nothing,
		inject: func(ctx context.Context) error { return s.withRedis(ctx, command...) }}
}

func (s *Scheduler) outOfMemory() *Fault {
	return &Fault{Name: "redis out of memory", Kind: "redis out of memory", victim: stack.Redis,
		inject: func(ctx context.Context) error { return s.withRedis(ctx, "CONFIG", "SET", "maxmemory", "1") },
		heal:   func(ctx context.Context) error { return s.withRedis(ctx, "CONFIG", "SET", "maxmemory", "0") }}
}

func (s *Scheduler) partition(from, to string) *Fault {
	kind := from + " cut off"
	if to == stack.Redis {
		kind = "redis cut off from one replica"
	} else if from == stack.Nginx {
		kind = "nginx cut off from one replica"
	}
	return &Fault{Name: "cut " + from + " from " + to, Kind: kind, inject: s.do("partition", from, to), heal: s.do("heal", from, to)}
}

// postgresGone swallows everything on the way to the database, as if it were paused.
func (s *Scheduler) postgresGone() *Fault {
	both := func(verb string) func(context.Context) error {
		return func(ctx context.Context) error {
			return errors.Join(s.target.Stack.Do(ctx, verb, stack.API1, stack.Postgres), s.target.Stack.Do(ctx, verb, stack.API2, stack.Postgres))
		}
	}
	return &Fault{Name: "postgres silent", Kind: "postgres pause", inject: both("partition"), heal: both("heal")}
}

// lockTable takes a table away from everybody.
func (s *Scheduler) lockTable() *Fault {
	tables := []string{"orders", "idempotency_keys", "payments", "outbox", "wallets"}
	table := tables[s.random.IntN(len(tables))]
	var conn *pgx.Conn
	return &Fault{Name: "lock " + table, Kind: "postgres table locked", victim: stack.Postgres,
		inject: func(ctx context.Context) (err error) {
			if conn, err = pgx.Connect(ctx, stack.PostgresURL(s.target.Stack.Addr(stack.Postgres))); err != nil {
				return err
			}
			_, err = conn.Exec(ctx, "BEGIN; LOCK TABLE "+table+" IN ACCESS EXCLUSIVE MODE")
			return err
		},
		heal: func(ctx context.Context) error {
			if conn != nil {
				_ = conn.Close(ctx) // the server may have gone in the meantime
			}
			return nil
		}}
}

func (s *Scheduler) slow() *Fault {
	links := [][2]string{{stack.Postgres, "150ms"}, {stack.Redis, "80ms"}, {stack.PSP, "1500ms"}, {stack.Nginx, "500ms"}}
	r, link := s.replica(), links[s.random.IntN(len(links))]
	return &Fault{Name: "slow " + r + " and " + link[0], Kind: "slow link", inject: s.do("slow", r, link[0], link[1]), heal: s.do("heal", r, link[0])}
}

// cutNginx ends connections to a replica in the middle of an answer.
func (s *Scheduler) cutNginx() *Fault {
	r := s.replica()
	return &Fault{Name: "cut answers of " + r, Kind: "answers cut in half",
		inject: s.do("cut", stack.Nginx, r, fmt.Sprint(200+s.random.IntN(1500))), heal: s.do("heal", stack.Nginx, r)}
}

// cutInside ends a replica's connections to what it needs in the middle of an answer.
func (s *Scheduler) cutInside() *Fault {
	links := []string{stack.Postgres, stack.Redis, stack.PSP}
	r, link := s.replica(), links[s.random.IntN(len(links))]
	return &Fault{Name: "cut answers of " + link + " to " + r, Kind: "inner answers cut in half",
		inject: s.do("cut", r, link, fmt.Sprint(200+s.random.IntN(3000))), heal: s.do("heal", r, link)}
}
