package fault

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/oncepay/oncepay/internal/localserver"
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
	{Name: "redis kill", Needs: SingleRedis, Breaks: []Damage{RedisDown, RedisLoses}, command: "kill redis"},
	{Name: "redis pause", Needs: SingleRedis, command: "pause redis"},
	// Redis executes a command whose caller has given up, and the caller's repetition.
	{Name: "redis stall", Needs: SingleRedis, Hold: stall, command: "pause redis"},
	{Name: "redis pause past the lease", Needs: SingleRedis, Hold: pastLease, command: "pause redis"},
	{Name: "redis flush", Hold: shortHold, Breaks: []Damage{RedisLoses}, draw: onMaster("FLUSHALL", "")},
	{
		Name: "redis flush while consumers are behind", Hold: shortHold, Breaks: []Damage{RedisLoses},
		Excuses: slices.Concat(redisUnreachable, postgresUnreachable), draw: (*Scheduler).flushUnconsumed,
	},
	{Name: "redis records damaged", Hold: longHold, Counts: true, Excuses: []books.Rule{}, traffic: true, draw: (*Scheduler).damageRecords},
	{Name: "redis script flush", Hold: shortHold, Excuses: []books.Rule{}, draw: onMaster("SCRIPT FLUSH", "")},
	{Name: "redis out of memory", draw: onMaster("CONFIG SET maxmemory 1", "CONFIG SET maxmemory 0")},
	// As with a full disk (MISCONF): reads are answered, and each write is refused, a deletion too.
	{Name: "redis refuses writes", Needs: SingleRedis, draw: onMaster("CONFIG SET min-replicas-to-write 1", "CONFIG SET min-replicas-to-write 0")},
}, func(k *Kind) {
	k.victims = []string{stack.Redis}
	if k.Excuses == nil {
		k.Excuses = redisUnreachable
	}
})

// stall is longer than a replica waits for a reply of Redis (250 ms), and shorter than two replies.
const stall = 375 * time.Millisecond

// onMaster sends a command to the Redis that takes writes, and another one to heal it, if there is
// one. The master does not change while a run has Redis as its victim.
func onMaster(command, heal string) draw {
	return func(s *Scheduler, r *Run) {
		r.Inject = s.tellMaster(command)
		if heal != "" {
			r.Heal = s.tellMaster(heal)
		}
	}
}

func (s *Scheduler) tellMaster(command string) step {
	words := []any{}
	for word := range strings.FieldsSeq(command) {
		words = append(words, word)
	}
	return func(ctx context.Context) error {
		addr, err := s.Stack.RedisMaster(ctx)
		if err == nil {
			_, err = localserver.AskRedis(ctx, addr, words...)
		}
		return err
	}
}

// behind is how long consumers are kept from their inbox before Redis forgets what they have read.
const behind = 3 * time.Second

// flushUnconsumed empties Redis while events that were published have not had their effects yet.
func (s *Scheduler) flushUnconsumed(r *Run) {
	lock("inbox")(s, r)
	r.Inject = steps(r.Inject, pause(behind), s.tellMaster("FLUSHALL"))
}

// damageRecords has every record be bytes that are no record, until its time is up: those of
// attempts that run, and those of answers. It counts them.
func (s *Scheduler) damageRecords(r *Run) {
	r.Inject = func(ctx context.Context) error {
		addr, err := s.Stack.RedisMaster(ctx)
		if err != nil {
			return err
		}
		client := redis.NewClient(&redis.Options{Addr: addr})
		defer func() { _ = client.Close() }()
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
	}
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
var sentinelKinds = append(each([]Kind{
	// Resumed, it takes itself for the master until Sentinel demotes it, and it drops the writes
	// that the new one does not have.
	{
		Name: "redis failover", Weight: failovers, Breaks: []Damage{RedisLoses}, Excuses: redisUnreachable,
		command: "pause master", draw: failover,
	},
	{
		Name: "redis failover while the replica lags", Weight: failovers, Breaks: []Damage{RedisLoses}, Counts: true,
		Excuses: redisUnreachable, traffic: true, command: "kill master", draw: failoverWithLoss,
	},
	{Name: "redis replica kill", command: "kill copy"}, // which no client should notice
}, func(k *Kind) { k.Needs, k.victims = Sentinel, []string{stack.Redis} }),
	// Two are left, which are enough for a quorum.
	Kind{Name: "sentinel kill", Needs: Sentinel, command: "kill sentinel-1..3"})

// ready waits until both servers of Redis are ready for a failover, and notes which is which.
func (s *Scheduler) ready(ctx context.Context) error {
	return wait.For(ctx, readyTimeout, askAgain, func(ctx context.Context) error {
		services, _, err := s.Stack.Status(ctx)
		if s.master, s.copy = pairOf(services); err == nil && (s.master == "" || s.copy == "") {
			err = ErrNotFired
		}
		return err
	})
}

// pairOf are the servers that are ready.
func pairOf(services []stack.ServiceStatus) (master, replica string) {
	roles := map[string]string{}
	for _, service := range services {
		if service.State == "ready" {
			roles[service.Role] = service.Name
		}
	}
	return roles["master"], roles["replica"]
}

// failover breaks the master, waits until Sentinel has promoted the other server, and notes how
// long that took.
func failover(s *Scheduler, r *Run) {
	breaks := r.Inject
	r.Inject = steps(breaks, func(ctx context.Context) error {
		began := time.Now()
		err := wait.For(ctx, promoteTimeout, askAgain, func(ctx context.Context) error {
			master, err := s.Stack.RedisMaster(ctx)
			if err == nil && master != s.Stack.Addr(s.copy) {
				err = fmt.Errorf("wait for Sentinel to promote %s: master is %s", s.copy, master)
			}
			return err
		})
		r.Promotion = time.Since(began)
		return err
	})
}

// failoverWithLoss kills the master while the replica is behind, so that Sentinel promotes a server
// that lacks acknowledged writes. It counts the events among these.
func failoverWithLoss(s *Scheduler, r *Run) {
	failover(s, r)
	kill, start, lag := r.Inject, r.Heal, s.Pause(shortestLag, longestLag)
	r.Label += fmt.Sprintf(" by %.1f s", lag.Seconds())
	r.Inject = steps(s.do("partition", stack.RedisReplica, stack.Redis), pause(lag), func(ctx context.Context) (err error) {
		r.Hits, err = missing(ctx, s.Stack.Addr(s.copy), s.Stack.Addr(s.master))
		if err != nil || r.Hits == 0 {
			return errors.Join(err, ErrNotFired)
		}
		return nil
	}, kill)
	r.Heal = all(s.do("heal", stack.RedisReplica, stack.Redis), start)
}

// missing counts the events that the master has in its stream, and its replica lacks.
func missing(ctx context.Context, replica, master string) (n int, err error) {
	for addr, sign := range map[string]int{master: 1, replica: -1} {
		length, failed := localserver.AskRedis(ctx, addr, "XLEN", books.EventStream)
		events, _ := strconv.Atoi(strings.Join(length, "")) // or it has failed
		n, err = n+sign*events, errors.Join(err, failed)
	}
	return n, err
}
