package nemesis

import (
	"context"

	"github.com/redis/go-redis/v9"

	"github.com/oncepay/oncepay/internal/stack"
)

// lossOfRedis marks a kind after which Redis begins empty.
func lossOfRedis(draw func(*Scheduler) *Fault) func(*Scheduler) *Fault {
	return func(s *Scheduler) *Fault {
		f := draw(s)
		f.Loses = true
		return f
	}
}

// redisCommand says something to Redis that hurts at once; there is nothing to heal.
func redisCommand(command ...any) func(*Scheduler) *Fault {
	return func(s *Scheduler) *Fault {
		return &Fault{Hold: shortHold, victims: []string{stack.Redis}, heal: nothing,
			inject: func(ctx context.Context) error { return s.onMaster(ctx, command...) }}
	}
}

func (s *Scheduler) outOfMemory() *Fault {
	return &Fault{victims: []string{stack.Redis},
		inject: func(ctx context.Context) error { return s.onMaster(ctx, "CONFIG", "SET", "maxmemory", "1") },
		heal:   func(ctx context.Context) error { return s.onMaster(ctx, "CONFIG", "SET", "maxmemory", "0") }}
}

// onMaster says something to the Redis that takes writes; the master does not change while one fault has it as its victim.
func (s *Scheduler) onMaster(ctx context.Context, command ...any) error {
	addr, err := s.target.Stack.RedisMaster(ctx)
	if err != nil {
		return err
	}
	client := redis.NewClient(&redis.Options{Addr: addr})
	defer func() { _ = client.Close() }()
	return client.Do(ctx, command...).Err()
}
