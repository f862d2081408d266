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
			inject: func(ctx context.Context) error { return s.withRedis(ctx, command...) }}
	}
}

func (s *Scheduler) outOfMemory() *Fault {
	return &Fault{victims: []string{stack.Redis},
		inject: func(ctx context.Context) error { return s.withRedis(ctx, "CONFIG", "SET", "maxmemory", "1") },
		heal:   func(ctx context.Context) error { return s.withRedis(ctx, "CONFIG", "SET", "maxmemory", "0") }}
}

func (s *Scheduler) withRedis(ctx context.Context, command ...any) error {
	client := redis.NewClient(&redis.Options{Addr: s.target.Stack.Addr(stack.Redis)})
	defer func() { _ = client.Close() }()
	return client.Do(ctx, command...).Err()
}
