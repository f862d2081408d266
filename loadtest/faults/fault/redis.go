package fault

import (
	"context"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/oncepay/oncepay/internal/stack"
	"github.com/oncepay/oncepay/internal/wait"
	"github.com/oncepay/oncepay/loadtest/books"
	"github.com/oncepay/oncepay/loadtest/faults/verify"
)

// redisUnreachable are the promises that need Redis to answer: heartbeats fail, and a request whose
// key cannot be completed is released.
var redisUnreachable = []books.Rule{verify.LeaseKept, verify.HangUpServed}

var redisKinds = []Kind{
	{
		Name: "redis kill", Victim: Redis, Needs: SingleRedis, Breaks: []Damage{RedisDown, RedisLoses},
		Excuses: redisUnreachable, draw: process("kill", stack.Redis, "start"),
	},
	{
		Name: "redis pause", Victim: Redis, Needs: SingleRedis, Excuses: redisUnreachable,
		draw: process("pause", stack.Redis, "resume"),
	},
	{
		Name: "redis stall", Victim: Redis, Needs: SingleRedis, Excuses: redisUnreachable,
		draw: (*Scheduler).stallRedis,
	},
	{
		Name: "redis pause past the lease", Victim: Redis, Needs: SingleRedis, Excuses: redisUnreachable,
		draw: pausedPastLease(stack.Redis),
	},
	{
		Name: "redis flush", Victim: Redis, Breaks: []Damage{RedisLoses}, Excuses: redisUnreachable,
		draw: redisCommand("FLUSHALL"),
	},
	{
		Name: "redis flush while consumers are behind", Victim: Redis, Breaks: []Damage{RedisLoses},
		Excuses: slices.Concat(redisUnreachable, postgresUnreachable), draw: (*Scheduler).flushUnconsumed,
	},
	{Name: "redis script flush", Victim: Redis, draw: redisCommand("SCRIPT", "FLUSH")},
	{
		Name: "redis out of memory", Victim: Redis, Excuses: redisUnreachable,
		draw: configured("maxmemory", "1", "0"),
	},
	{
		// As with a full disk (MISCONF): reads are answered, and every write is refused, a deletion
		// too.
		Name: "redis refuses writes", Victim: Redis, Needs: SingleRedis, Excuses: redisUnreachable,
		draw: configured("min-replicas-to-write", "1", "0"),
	},
}

// stall is longer than a replica waits for a reply of Redis (250 ms), and shorter than two replies.
const stall = 375 * time.Millisecond

// stallRedis has Redis execute a command whose caller has given up, and the caller's repetition.
func (s *Scheduler) stallRedis() *Run {
	r := process("pause", stack.Redis, "resume")(s)
	r.Hold = stall
	return r
}

// redisCommand sends Redis a command that takes effect at once; there is nothing to heal.
func redisCommand(command ...any) func(*Scheduler) *Run {
	return func(s *Scheduler) *Run {
		return &Run{
			Hold: shortHold, victims: []string{stack.Redis}, heal: nothing,
			inject: func(ctx context.Context) error { return s.onMaster(ctx, command...) },
		}
	}
}

// behind is how long consumers are kept from their inbox before Redis forgets what they have read.
const behind = 3 * time.Second

// flushUnconsumed empties Redis while events that were published have not had their effects yet.
func (s *Scheduler) flushUnconsumed() *Run {
	r := s.lock("inbox")
	lock := r.inject
	r.Label, r.Hold, r.victims = "", shortHold, append(r.victims, stack.Redis)
	r.inject = func(ctx context.Context) error {
		if err := lock(ctx); err != nil {
			return err
		}
		if err := wait.Pause(ctx, behind); err != nil {
			return err
		}
		return s.onMaster(ctx, "FLUSHALL")
	}
	return r
}

// configured changes a setting of Redis.
func configured(name, broken, healed string) func(*Scheduler) *Run {
	return func(s *Scheduler) *Run {
		to := func(value string) func(context.Context) error {
			return func(ctx context.Context) error { return s.onMaster(ctx, "CONFIG", "SET", name, value) }
		}
		return &Run{victims: []string{stack.Redis}, inject: to(broken), heal: to(healed)}
	}
}

// onMaster sends a command to the Redis that takes writes. The master does not change while a run
// has Redis as its victim.
func (s *Scheduler) onMaster(ctx context.Context, command ...any) error {
	addr, err := s.target.Stack.RedisMaster(ctx)
	if err != nil {
		return err
	}
	client := redis.NewClient(&redis.Options{Addr: addr})
	defer func() { _ = client.Close() }()
	return client.Do(ctx, command...).Err()
}
