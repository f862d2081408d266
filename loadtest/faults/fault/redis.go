package fault

import (
	"context"
	"errors"
	"fmt"
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

// redisKinds excuse that Redis is unreachable, if they don't say what else.
var redisKinds = each([]Kind{
	{Name: "redis kill", Needs: SingleRedis, Breaks: []Damage{RedisDown, RedisLoses}, draw: process("kill", stack.Redis, "start")},
	{Name: "redis pause", Needs: SingleRedis, draw: process("pause", stack.Redis, "resume")},
	// Redis executes a command whose caller has given up, and the caller's repetition.
	{Name: "redis stall", Needs: SingleRedis, draw: lasting(stall, process("pause", stack.Redis, "resume"))},
	{Name: "redis pause past the lease", Needs: SingleRedis, draw: lasting(pastLease, process("pause", stack.Redis, "resume"))},
	{Name: "redis flush", Breaks: []Damage{RedisLoses}, draw: redisCommand("FLUSHALL")},
	{
		Name: "redis flush while consumers are behind", Breaks: []Damage{RedisLoses},
		Excuses: slices.Concat(redisUnreachable, postgresUnreachable), draw: (*Scheduler).flushUnconsumed,
	},
	{Name: "redis records damaged", Excuses: []books.Rule{}, draw: (*Scheduler).damageRecords},
	{Name: "redis script flush", Excuses: []books.Rule{}, draw: redisCommand("SCRIPT", "FLUSH")},
	{Name: "redis out of memory", draw: configured("maxmemory", "1", "0")},
	// As with a full disk (MISCONF): reads are answered, and each write is refused, a deletion too.
	{Name: "redis refuses writes", Needs: SingleRedis, draw: configured("min-replicas-to-write", "1", "0")},
}, func(k *Kind) {
	k.Victim = Redis
	if k.Excuses == nil {
		k.Excuses = redisUnreachable
	}
})

// stall is longer than a replica waits for a reply of Redis (250 ms), and shorter than two replies.
const stall = 375 * time.Millisecond

// redisCommand sends Redis a command that takes effect at once; there is nothing to heal.
func redisCommand(command ...any) draw {
	return func(s *Scheduler) *Run {
		return &Run{Hold: shortHold, victims: []string{stack.Redis}, inject: s.onMaster(command...), heal: nothing}
	}
}

// behind is how long consumers are kept from their inbox before Redis forgets what they have read.
const behind = 3 * time.Second

// flushUnconsumed empties Redis while events that were published have not had their effects yet.
func (s *Scheduler) flushUnconsumed() *Run {
	r := s.lock("inbox")
	r.Label, r.Hold, r.victims = "", shortHold, append(r.victims, stack.Redis)
	r.inject = steps(r.inject, pause(behind), s.onMaster("FLUSHALL"))
	return r
}

// damageRecords has every record be bytes that are no record, until its time is up: those of
// attempts that run, and those of answers. It counts them.
func (s *Scheduler) damageRecords() *Run {
	r := &Run{Hold: longHold, victims: []string{stack.Redis}, heal: nothing, Counts: true, traffic: true}
	r.inject = func(ctx context.Context) error {
		return s.withMaster(ctx, func(client *redis.Client) error {
			keys := client.Scan(ctx, 0, "idempotency:*", 1000).Iterator()
			for keys.Next(ctx) {
				err := client.SetArgs(ctx, keys.Val(), "damaged", redis.SetArgs{Mode: "XX", KeepTTL: true}).Err()
				if err == nil {
					r.Hits++
				} else if !errors.Is(err, redis.Nil) { // it has expired
					return err
				}
			}
			return keys.Err()
		})
	}
	return r
}

// configured changes a setting of Redis.
func configured(name, broken, healed string) draw {
	return func(s *Scheduler) *Run {
		return &Run{
			victims: []string{stack.Redis},
			inject:  s.onMaster("CONFIG", "SET", name, broken), heal: s.onMaster("CONFIG", "SET", name, healed),
		}
	}
}

// onMaster sends a command to the Redis that takes writes. The master does not change while a run
// has Redis as its victim.
func (s *Scheduler) onMaster(command ...any) step {
	return func(ctx context.Context) error {
		return s.withMaster(ctx, func(client *redis.Client) error { return client.Do(ctx, command...).Err() })
	}
}

func (s *Scheduler) withMaster(ctx context.Context, do func(*redis.Client) error) error {
	addr, err := s.Stack.RedisMaster(ctx)
	if err != nil {
		return err
	}
	client := redis.NewClient(&redis.Options{Addr: addr})
	defer func() { _ = client.Close() }()
	return do(client)
}

const (
	// shortestLag and longestLag bound how far the replica is behind when the master dies.
	shortestLag, longestLag = time.Second, 3 * time.Second
	// promoteTimeout bounds the wait for Sentinel: two or three seconds normally, and more for each
	// attempt that failed.
	promoteTimeout = 30 * time.Second
	// readyTimeout bounds the wait until an old master is a replica, which Sentinel takes some ten
	// seconds for.
	readyTimeout = 40 * time.Second
	// askAgain is how often Sentinel is asked.
	askAgain = 100 * time.Millisecond
	// failovers is how many failovers a round has: they are what a campaign with Sentinel is about.
	failovers = 3
)

// sentinelKinds take the place of the kinds that need a single Redis, which Sentinel would answer
// with a failover.
var sentinelKinds = each([]Kind{
	{Name: "redis failover", Weight: failovers, Breaks: []Damage{RedisLoses}, Excuses: redisUnreachable, draw: (*Scheduler).failover},
	{
		Name: "redis failover while the replica lags", Weight: failovers, Breaks: []Damage{RedisLoses},
		Excuses: redisUnreachable, draw: (*Scheduler).failoverWithLoss,
	},
	{Name: "redis replica kill", draw: (*Scheduler).killRedisReplica},
	{Name: "sentinel kill", draw: (*Scheduler).killSentinel},
}, func(k *Kind) { k.Victim, k.Needs = Redis, Sentinel })

// failover pauses the master until Sentinel has promoted the replica. Resumed, it takes itself for
// the master until Sentinel demotes it, and it drops the writes that the new one does not have.
func (s *Scheduler) failover() *Run {
	r := s.ofPair()
	r.inject = func(ctx context.Context) error { return s.loseMaster(ctx, r, "pause") }
	r.heal = func(ctx context.Context) error { return s.Stack.Do(ctx, "resume", r.master) }
	return r
}

// ofPair is a run that waits until both servers are ready.
func (s *Scheduler) ofPair() *Run {
	r := &Run{victims: []string{stack.Redis}}
	r.prepare = func(ctx context.Context) (err error) {
		r.master, err = s.awaitPair(ctx)
		return err
	}
	return r
}

// failoverWithLoss kills the master while the replica is behind, so that Sentinel promotes a server
// that lacks acknowledged writes. It counts the events among these.
func (s *Scheduler) failoverWithLoss() *Run {
	lag := shortestLag + time.Duration(s.random.Int64N(int64(longestLag-shortestLag)))
	r := s.ofPair()
	r.Label, r.Counts, r.traffic = fmt.Sprintf("redis failover, the replica %.1f s behind", lag.Seconds()), true, true
	r.inject = steps(s.do("partition", stack.RedisReplica, stack.Redis), pause(lag), func(ctx context.Context) (err error) {
		r.Hits, err = missing(ctx, s.Stack.Addr(other(r.master)), s.Stack.Addr(r.master))
		if err != nil || r.Hits == 0 {
			return errors.Join(err, ErrNotFired)
		}
		return s.loseMaster(ctx, r, "kill")
	})
	r.heal = func(ctx context.Context) error {
		return errors.Join(s.Stack.Do(ctx, "heal", stack.RedisReplica, stack.Redis), s.Stack.Do(ctx, "start", r.master))
	}
	return r
}

// missing counts the events in the master's stream that are not in its replica's.
func missing(ctx context.Context, replica, master string) (int, error) {
	behind := redis.NewClient(&redis.Options{Addr: replica})
	ahead := redis.NewClient(&redis.Options{Addr: master})
	defer func() { _, _ = behind.Close(), ahead.Close() }()
	last, err := behind.XRevRangeN(ctx, books.EventStream, "+", "-", 1).Result()
	if err != nil {
		return 0, err
	}
	after := "-"
	if len(last) > 0 {
		after = "(" + last[0].ID
	}
	events, err := ahead.XRange(ctx, books.EventStream, after, "+").Result()
	return len(events), err
}

// killRedisReplica takes the copy away, which no client should notice.
func (s *Scheduler) killRedisReplica() *Run {
	r := s.ofPair()
	r.inject = func(ctx context.Context) error { return s.Stack.Do(ctx, "kill", other(r.master)) }
	r.heal = func(ctx context.Context) error { return s.Stack.Do(ctx, "start", other(r.master)) }
	return r
}

// killSentinel leaves two, which are enough for a quorum.
func (s *Scheduler) killSentinel() *Run {
	all := []string{stack.Sentinel1, stack.Sentinel2, stack.Sentinel3}
	sentinel := all[s.random.IntN(len(all))]
	r := process("kill", sentinel, "start")(s)
	r.Label = "kill " + sentinel
	return r
}

// awaitPair waits until both servers are ready for a failover, and returns the master's name.
func (s *Scheduler) awaitPair(ctx context.Context) (master string, err error) {
	err = wait.For(ctx, readyTimeout, askAgain, func(ctx context.Context) error {
		services, _, err := s.Stack.Status(ctx)
		if master = masterOfPair(services); master == "" {
			return errors.Join(err, ErrNotFired)
		}
		return err
	})
	return master, err
}

// masterOfPair is the master of a pair that is ready for a failover, or empty.
func masterOfPair(services []stack.ServiceStatus) (master string) {
	ready := 0
	for _, service := range services {
		if service.State != "ready" || service.Role != "master" && service.Role != "replica" {
			continue
		}
		if ready++; service.Role == "master" {
			master = service.Name
		}
	}
	if ready < 2 {
		return ""
	}
	return master
}

// loseMaster breaks the master, waits until the other server is one, and notes how long that took.
func (s *Scheduler) loseMaster(ctx context.Context, r *Run, verb string) error {
	if err := s.Stack.Do(ctx, verb, r.master); err != nil {
		return err
	}
	began, next := time.Now(), other(r.master)
	err := wait.For(ctx, promoteTimeout, askAgain, func(ctx context.Context) error {
		master, err := s.Stack.RedisMaster(ctx)
		if err == nil && master != s.Stack.Addr(next) {
			err = fmt.Errorf("wait for Sentinel to promote %s: master is %s", next, master)
		}
		return err
	})
	r.Promotion = time.Since(began)
	return err
}

func other(server string) string {
	if server == stack.Redis {
		return stack.RedisReplica
	}
	return stack.Redis
}
