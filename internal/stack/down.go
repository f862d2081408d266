package stack

import (
	"context"

	"github.com/oncepay/oncepay/internal/stack/deployment"
)

// Down removes the stack and, unless keepData is set, its data. A stack that isn't there is no
// error.
func (s *Stack) Down(ctx context.Context, keepData bool) error {
	if !s.Claimed() {
		s.Printf("no stack in %s\n", s.Dir)
		return nil
	}
	return s.locked(ctx, func(ctx context.Context) error { return s.down(ctx, keepData) })
}

func (s *Stack) down(ctx context.Context, keepData bool) error {
	t := s.Step("down", "")
	if s.driver != nil {
		if err := s.driver.Down(ctx, keepData); err != nil {
			return t.End("", err)
		}
		if keepData {
			return t.End("stopped, data kept", s.DropAllBut(deployment.LockName, deployment.StateName, Postgres, PostgresStandby, deployment.ProviderData))
		}
	}
	return t.End("all removed", s.Remove())
}
