package fault

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/oncepay/oncepay/internal/stack"
	"github.com/oncepay/oncepay/internal/wait"
)

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
var sentinelKinds = needs(Sentinel, []Kind{
	{
		Name: "redis failover", Victim: Redis, Weight: failovers, Breaks: []Damage{RedisLoses},
		Excuses: redisUnreachable, draw: (*Scheduler).failover,
	},
	{
		Name: "redis failover while the replica lags", Victim: Redis, Weight: failovers,
		Breaks: []Damage{RedisLoses}, Excuses: redisUnreachable, draw: (*Scheduler).failoverWithLoss,
	},
	{Name: "redis replica kill", Victim: Redis, draw: (*Scheduler).killRedisReplica},
	{Name: "sentinel kill", Victim: Redis, draw: (*Scheduler).killSentinel},
})

// failover pauses the master until Sentinel has promoted the replica. Resumed, it takes itself for
// the master until Sentinel demotes it, and it drops the writes that the new one does not have.
func (s *Scheduler) failover() *Run {
	r := &Run{victims: []string{stack.Redis}}
	old := s.prepareFailover(r)
	r.inject = func(ctx context.Context) (err error) {
		if err := s.target.Stack.Do(ctx, "pause", *old); err != nil {
			return err
		}
		r.Promotion, err = s.awaitPromotion(ctx, *old)
		return err
	}
	r.heal = func(ctx context.Context) error { return s.target.Stack.Do(ctx, "resume", *old) }
	return r
}

// prepareFailover waits until both servers are ready, and returns where the master's name will be.
func (s *Scheduler) prepareFailover(r *Run) *string {
	master := new(string)
	r.prepare = func(ctx context.Context) (err error) {
		*master, err = s.awaitPair(ctx)
		return err
	}
	return master
}

// failoverWithLoss kills the master while the replica is behind, so that Sentinel promotes a server
// that lacks acknowledged writes. It counts the events among these.
func (s *Scheduler) failoverWithLoss() *Run {
	lag := shortestLag + time.Duration(s.random.Int64N(int64(longestLag-shortestLag)))
	r := &Run{
		Label:  fmt.Sprintf("redis failover, the replica %.1f s behind", lag.Seconds()),
		Counts: true, victims: []string{stack.Redis}, traffic: true,
	}
	old := s.prepareFailover(r)
	r.inject = func(ctx context.Context) (err error) {
		st := s.target.Stack
		if err := st.Do(ctx, "partition", stack.RedisReplica, stack.Redis); err != nil {
			return err
		}
		if err := wait.Pause(ctx, lag); err != nil {
			return err
		}
		r.Hits, err = missing(ctx, st.Addr(other(*old)), st.Addr(*old))
		if err != nil || r.Hits == 0 {
			return errors.Join(err, ErrNotFired)
		}
		if err := st.Do(ctx, "kill", *old); err != nil {
			return err
		}
		r.Promotion, err = s.awaitPromotion(ctx, *old)
		return err
	}
	r.heal = func(ctx context.Context) error {
		return errors.Join(s.target.Stack.Do(ctx, "heal", stack.RedisReplica, stack.Redis),
			s.target.Stack.Do(ctx, "start", *old))
	}
	return r
}

// stream is where events are published.
const stream = "oncepay:events"

// missing counts the events in the master's stream that are not in its replica's.
func missing(ctx context.Context, replica, master string) (int, error) {
	behind := redis.NewClient(&redis.Options{Addr: replica})
	ahead := redis.NewClient(&redis.Options{Addr: master})
	defer func() { _, _ = behind.Close(), ahead.Close() }()
	last, err := behind.XRevRangeN(ctx, stream, "+", "-", 1).Result()
	if err != nil {
		return 0, err
	}
	after := "-"
	if len(last) > 0 {
		after = "(" + last[0].ID
	}
	events, err := ahead.XRange(ctx, stream, after, "+").Result()
	return len(events), err
}

// killRedisReplica takes the copy away, which no client should notice.
func (s *Scheduler) killRedisReplica() *Run {
	r := &Run{victims: []string{stack.Redis}}
	master := s.prepareFailover(r)
	r.inject = func(ctx context.Context) error { return s.target.Stack.Do(ctx, "kill", other(*master)) }
	r.heal = func(ctx context.Context) error { return s.target.Stack.Do(ctx, "start", other(*master)) }
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
		services, _, err := s.target.Stack.Status(ctx)
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
		switch {
		case service.State != "ready":
		case service.Role == "master":
			master = service.Name
			ready++
		case service.Role == "replica":
			ready++
		}
	}
	if ready < 2 {
		return ""
	}
	return master
}

// awaitPromotion waits until the other server is master, and returns how long that took.
func (s *Scheduler) awaitPromotion(ctx context.Context, old string) (took time.Duration, err error) {
	began := time.Now()
	err = wait.For(ctx, promoteTimeout, askAgain, func(ctx context.Context) error {
		master, err := s.target.Stack.RedisMaster(ctx)
		if err == nil && master != s.target.Stack.Addr(other(old)) {
			err = fmt.Errorf("wait for Sentinel to promote %s: master is %s", other(old), master)
		}
		return err
	})
	return time.Since(began), err
}

func other(server string) string {
	if server == stack.Redis {
		return stack.RedisReplica
	}
	return stack.Redis
}
