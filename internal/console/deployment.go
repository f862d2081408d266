package console

import (
	"context"
	"io"
	"strings"

	"github.com/oncepay/oncepay/internal/stack"
	"github.com/oncepay/oncepay/internal/tiers"
)

// deployment is the local deployment in a folder, as a [Switchboard]. Each call reads its state
// anew: other commands change it, too.
type deployment struct{ dir string }

// now is the deployment as it is; what its commands print goes to out.
func (d deployment) now(out io.Writer) (*stack.Stack, error) {
	return stack.New(stack.Options{Dir: d.dir, Out: out})
}

// ForStack returns the settings of a console for the deployment in a folder: all but its address
// and its log.
func ForStack(dir string) (Config, error) {
	d := deployment{dir}
	s, err := d.now(nil)
	if err != nil {
		return Config{}, err
	}
	doors := map[string]string{stack.Nginx: s.URL()}
	for _, replica := range stack.Replicas {
		doors[replica] = "http://" + s.Addr(replica)
	}
	return Config{Addr: s.Addr(stack.Console), Doors: doors, Servers: d.servers, Switchboard: d}, nil
}

// Do implements [Switchboard].
func (d deployment) Do(ctx context.Context, verb string, args ...string) (string, error) {
	var said strings.Builder
	s, err := d.now(&said)
	if err == nil {
		err = s.Do(ctx, verb, args...)
	}
	return said.String(), err
}

// Status implements [Switchboard].
func (d deployment) Status(ctx context.Context) ([]stack.ServiceStatus, []string, error) {
	s, err := d.now(nil)
	if err != nil {
		return nil, nil, err
	}
	return s.Status(ctx)
}

// servers finds those that take writes now; one that can't be told is the first one.
func (d deployment) servers(ctx context.Context) tiers.Servers {
	s, err := d.now(nil)
	if err != nil {
		return tiers.Servers{}
	}
	return tiers.Of(ctx, s)
}
