package stack

import (
	"cmp"
	"context"
	"fmt"
	"slices"
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
	// Why is the reason when a running service is not ready, or what a ready one does without.
	Why string
	// Remedy is the command of `stack` that has it run again; empty: it runs.
	Remedy string
	// Role is that of a replicated server. Redis: master or replica, as Sentinel sees it.
	// PostgreSQL: primary or standby.
	Role string
}

// Status asks every service how it is, and lists the faults that are in force on the connections
// between them.
func (s *Stack) Status(ctx context.Context) (services []ServiceStatus, active []string, err error) {
	if s.driver == nil {
		return nil, nil, s.noStack()
	}
	conditions, err := s.driver.conditions(ctx)
	if err != nil {
		return nil, nil, fmt.Errorf("status: %w", err)
	}
	names := s.Services()
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
		var of map[string][]string
		of, err = s.faults().Active()
		for _, e := range edges {
			for _, fault := range of[e.name()] {
				active = append(active, e.String()+": "+fault)
			}
		}
	}
	if s.IsReplicated() && s.replicationIsCut(ctx) {
		active = append(active, replication.String()+": partition")
	}
	return services, active, err
}

func (s *Stack) statusOf(ctx context.Context, name string, c condition) ServiceStatus {
	status := ServiceStatus{Name: name, Addr: s.Addr(name), State: cmp.Or(c.state, stopped), ID: c.id}
	switch {
	case s.IsReplicated() && (name == Redis || name == RedisReplica):
		status.Role = s.redisRole(ctx, name)
	case s.HasStandby() && name == s.Primary():
		status.Role = "primary"
	case s.HasStandby() && name == s.StandbyServer():
		status.Role = "standby"
	}
	if c.state != running {
		status.Remedy = s.remedy(name, c.state)
		return status
	}
	status.State = "ready"
	var err error
	if slices.Contains(Replicas, name) {
		status.Why, err = s.askReplica(ctx, name)
	} else {
		err = s.probe(ctx, name)
	}
	if err != nil {
		status.State = "not ready"
		status.Why = cmp.Or(status.Why, strings.Split(err.Error(), "\n")[0])
	}
	return status
}

// remedy is the command that has a service run again.
func (s *Stack) remedy(name, state string) string {
	_, err := findVerb("start", name)
	switch {
	case state == paused:
		return "resume " + name
	case s.Ended && name == s.StandbyServer(): // on its old data it would be a second primary
		return "follow " + Postgres
	case err != nil:
		return "up"
	}
	return "start " + name
}

// PrintStatus writes Status as a table.
func (s *Stack) PrintStatus(ctx context.Context) error {
	services, active, err := s.Status(ctx)
	if err != nil {
		return err
	}
	s.printf("%s driver, %s\n", s.state.Driver, s.Dir)
	for _, one := range services {
		state, why := one.explain(s.dirFlag())
		text := fmt.Sprintf("  %-*s %-17s %-10s %-14s %s", nameWidth, one.Name, one.Addr, state, one.ID, strings.TrimSpace(one.Role+" "+why))
		s.printf("%s\n", strings.TrimRight(text, " "))
	}
	for _, fault := range active {
		s.printf("  fault: %s\n", fault)
	}
	return nil
}

// explain returns the state as a person reads it, with the reason or the way out. The flags are
// those of `stack` for this stack.
func (one ServiceStatus) explain(flags string) (state, why string) {
	switch {
	case one.Remedy != "":
		return one.State, "end this: stack " + one.Remedy + flags
	case one.State == "ready" && one.Why != "":
		return "degraded", one.Why
	}
	return one.State, one.Why
}
