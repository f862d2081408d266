package stack

import (
	"context"
	"fmt"
	"strings"

	"golang.org/x/sync/errgroup"
)

// ServiceStatus is what is known of a service.
type ServiceStatus struct {
	Name string
	Addr string
	// State is ready, not ready, paused or stopped.
	State string
	// ID is the process or container.
	ID string
	// Why is the reason when a running service is not ready.
	Why string
	// Role is of a Redis server that Sentinel looks after: master or replica, as Sentinel sees it.
	Role string
}

// Status asks every service how it is, and lists the faults that are in force on the connections
// between them.
func (s *Stack) Status(ctx context.Context) (services []ServiceStatus, active []string, err error) {
	if s.driver == nil {
		return nil, nil, fmt.Errorf("%w in %s", ErrNoStack, s.Dir)
	}
	conditions, err := s.driver.conditions(ctx)
	if err != nil {
		return nil, nil, fmt.Errorf("status: %w", err)
	}
	names := s.services()
	services = make([]ServiceStatus, len(names))
	var asking errgroup.Group
	for i, name := range names {
		asking.Go(func() error {
			services[i] = s.statusOf(ctx, name, conditions[name])
			return nil
		})
	}
	_ = asking.Wait()
	if conditions[Proxy].state == running {
		active, err = s.faults().active(ctx)
	}
	if s.isReplicated() && s.replicationIsCut(ctx) {
		active = append(active, replication.String()+": partition")
	}
	return services, active, err
}

func (s *Stack) statusOf(ctx context.Context, name string, c condition) ServiceStatus {
	status := ServiceStatus{Name: name, Addr: s.addr(name), State: c.state, ID: c.id}
	if s.isReplicated() && (name == Redis || name == RedisReplica) {
		status.Role = s.redisRole(ctx, name)
	}
	if c.state != running {
		return status
	}
	status.State = "ready"
	if err := s.probe(ctx, name); err != nil {
		status.State, status.Why = "not ready", strings.Split(err.Error(), "\n")[0]
	}
	return status
}

// PrintStatus writes Status as a table.
func (s *Stack) PrintStatus(ctx context.Context) error {
	services, active, err := s.Status(ctx)
	if err != nil {
		return err
	}
	s.printf("%s driver, %s\n", s.state.data.Driver, s.Dir)
	for _, line := range services {
		text := fmt.Sprintf("  %-*s %-17s %-10s %-14s %s", s.nameWidth(), line.Name, line.Addr, line.State, line.ID, line.Role+" "+line.Why)
		s.printf("%s\n", strings.TrimRight(text, " "))
	}
	for _, fault := range active {
		s.printf("  fault: %s\n", fault)
	}
	return nil
}
