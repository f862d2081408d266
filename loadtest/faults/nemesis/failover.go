package nemesis

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/oncepay/oncepay/internal/stack"
)

const (
	// longestLag is how far the replica may stay behind before the primary dies.
	shortestLag, longestLag = time.Second, 3 * time.Second
	// appointTimeout bounds the wait for Sentinel: two or three seconds normally, and seconds more for each attempt that failed.
	appointTimeout = 30 * time.Second
	// wholeTimeout bounds the wait for an old master to be made a replica, which Sentinel takes some ten seconds for.
	wholeTimeout = 40 * time.Second
	// lookAgain is how often Sentinel is asked.
	lookAgain = 100 * time.Millisecond
)

// failovers take the place of what hurts a single Redis, which Sentinel would answer with one.
var failovers = []kind{
	{"redis failover", (*Scheduler).failover},
	{"redis failover while the replica lags", (*Scheduler).failoverWithLoss},
	{"redis replica kill", (*Scheduler).killRedisReplica},
	{"sentinel kill", (*Scheduler).killSentinel},
}

// oftener is how many times in a round a failover is drawn: it is what a campaign with Sentinel is about.
const oftener = 3

func (k kind) times() int {
	if k.name == failovers[0].name || k.name == failovers[1].name {
		return oftener
	}
	return 1
}

// singleOnly are the kinds that make no sense with Sentinel: failovers in disguise, and connections that don't go through the proxy.
var singleOnly = []string{"redis kill", "redis pause", "redis pause past the lease", "redis cut off from one replica"}

func withSentinel(kinds []kind) []kind {
	kinds = slices.DeleteFunc(slices.Clone(kinds), func(k kind) bool { return slices.Contains(singleOnly, k.name) })
	return append(kinds, failovers...)
}

// failover pauses the master until Sentinel has appointed the replica. Then it wakes up and takes itself for the master, until Sentinel
// tells it otherwise and it throws away what the other one has not.
func (s *Scheduler) failover() *Fault {
	f := &Fault{Loses: true, victims: []string{stack.Redis}}
	old := ""
	f.prepare = func(ctx context.Context) (err error) {
		old, err = s.wholePair(ctx)
		return err
	}
	f.inject = func(ctx context.Context) (err error) {
		if err := s.target.Stack.Do(ctx, "pause", old); err != nil {
			return err
		}
		f.Appointed, err = s.awaitAppointed(ctx, old)
		return err
	}
	f.heal = func(ctx context.Context) error { return s.target.Stack.Do(ctx, "resume", old) }
	return f
}

// failoverWithLoss kills the master while the replica is behind, so that Sentinel appoints one that lacks what clients were told is
// kept. The events among that are counted.
func (s *Scheduler) failoverWithLoss() *Fault {
	f := &Fault{Loses: true, Counts: true, victims: []string{stack.Redis}, needs: true}
	lag := shortestLag + time.Duration(s.random.Int64N(int64(longestLag-shortestLag)))
	old := ""
	f.Name = fmt.Sprintf("redis failover, the replica %.1f s behind", lag.Seconds())
	f.prepare = func(ctx context.Context) (err error) {
		old, err = s.wholePair(ctx)
		return err
	}
	f.inject = func(ctx context.Context) (err error) {
		if err := s.target.Stack.Do(ctx, "partition", stack.RedisReplica, stack.Redis); err != nil {
			return err
		}
		select {
		case <-time.After(lag):
		case <-ctx.Done():
			return ctx.Err()
		}
		if f.Hits, err = missing(ctx, s.target.Stack.Addr(other(old)), s.target.Stack.Addr(old)); err != nil || f.Hits == 0 {
			return errors.Join(err, ErrNotFired)
		}
		if err := s.target.Stack.Do(ctx, "kill", old); err != nil {
			return err
		}
		f.Appointed, err = s.awaitAppointed(ctx, old)
		return err
	}
	f.heal = func(ctx context.Context) error {
		return errors.Join(s.target.Stack.Do(ctx, "heal", stack.RedisReplica, stack.Redis), s.target.Stack.Do(ctx, "start", old))
	}
	return f
}

// stream is where events are published.
const stream = "oncepay:events"

// missing counts the events in the master's stream that are not in its replica's.
func missing(ctx context.Context, replica, master string) (int, error) {
	behind, ahead := redis.NewClient(&redis.Options{Addr: replica}), redis.NewClient(&redis.Options{Addr: master})
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

// killRedisReplica takes away the copy, which no client should notice.
func (s *Scheduler) killRedisReplica() *Fault {
	f := &Fault{victims: []string{stack.Redis}}
	master := ""
	f.prepare = func(ctx context.Context) (err error) {
		master, err = s.wholePair(ctx)
		return err
	}
	f.inject = func(ctx context.Context) error { return s.target.Stack.Do(ctx, "kill", other(master)) }
	f.heal = func(ctx context.Context) error { return s.target.Stack.Do(ctx, "start", other(master)) }
	return f
}

// killSentinel leaves two, which are enough to agree.
func (s *Scheduler) killSentinel() *Fault {
	all := []string{stack.Sentinel1, stack.Sentinel2, stack.Sentinel3}
	f := process("kill", all[s.random.IntN(len(all))], "start")(s)
	f.Name = "kill " + f.victims[0]
	return f
}

// wholePair waits until Redis has recovered from the last failover, and names the master.
func (s *Scheduler) wholePair(ctx context.Context) (master string, err error) {
	ctx, cancel := context.WithTimeout(ctx, wholeTimeout)
	defer cancel()
	for {
		services, _, err := s.target.Stack.Status(ctx)
		if err == nil {
			if master := masterOfWhole(services); master != "" {
				return master, nil
			}
		}
		select {
		case <-time.After(lookAgain):
		case <-ctx.Done():
			return "", ErrNotFired
		}
	}
}

// masterOfWhole is the master of a pair that is ready for a failover, or nothing.
func masterOfWhole(services []stack.ServiceStatus) (master string) {
	ready := 0
	for _, service := range services {
		if service.Role == "" || service.State != "ready" {
			continue
		}
		ready++
		if service.Role == "master" {
			master = service.Name
		}
	}
	if ready < 2 {
		return ""
	}
	return master
}

// awaitAppointed waits until the other server is master, and tells how long that took.
func (s *Scheduler) awaitAppointed(ctx context.Context, old string) (took time.Duration, err error) {
	ctx, cancel := context.WithTimeout(ctx, appointTimeout)
	defer cancel()
	began := time.Now()
	for want := s.target.Stack.Addr(other(old)); ; {
		if master, err := s.target.Stack.RedisMaster(ctx); err == nil && master == want {
			return time.Since(began), nil
		}
		select {
		case <-time.After(lookAgain):
		case <-ctx.Done():
			return 0, fmt.Errorf("%s was not appointed by Sentinel: %w", other(old), ctx.Err())
		}
	}
}

func other(server string) string {
	if server == stack.Redis {
		return stack.RedisReplica
	}
	return stack.Redis
}
