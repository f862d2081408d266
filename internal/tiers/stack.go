package tiers

import (
	"context"

	"github.com/oncepay/oncepay/internal/stack"
)

// Of returns where the tiers of a local deployment are now.
func Of(ctx context.Context, s *stack.Stack) Servers {
	redis, err := s.RedisMaster(ctx)
	if err != nil { // the sentinels are away: the first server will say so itself
		redis = s.Addr(stack.Redis)
	}
	return Servers{Redis: redis, Postgres: stack.PostgresURL(s.PostgresPrimary()), Provider: "http://" + s.Addr(stack.PSP),
		Mails: "http://" + s.Ops(stack.Mail)}
}
