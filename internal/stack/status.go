package stack

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/oncepay/oncepay/internal/localserver"
)

// ServiceStatus is what is known of a service.
type ServiceStatus struct {
	Name   string
	State  string // ready, not ready, paused or stopped
	ID     string // of the process or container
	Why    string // a running service is not ready
	Remedy string // the command of `stack` that has it run again; empty: it runs
	Role   string // of a replicated server: master or replica, as Sentinel sees it; primary or standby
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
	services = make([]ServiceStatus, len(s.Services()))
	var asking sync.WaitGroup
	for i, name := range s.Services() {
		asking.Go(func() { services[i] = s.statusOf(ctx, name, conditions[name]) })
	}
	asking.Wait()
	if conditions[Proxy].State == running {
		if active, err = inForce(s.faults()); err != nil {
			err = fmt.Errorf("read the faults that are in force: %w", err)
		}
	}
	if s.IsReplicated() && s.replicationIsCut(ctx) {
		active = append(active, replication.String()+": partition")
	}
	return services, active, err
}

// statusOf completes what the driver knows of a service.
func (s *Stack) statusOf(ctx context.Context, name string, status ServiceStatus) ServiceStatus {
	status.Name, status.State = name, cmp.Or(status.State, stopped)
	switch {
	case s.IsReplicated() && slices.Contains(redisPair, name):
		status.Role = s.redisRole(ctx, name)
	case s.HasStandby() && name == s.Primary():
		status.Role = "primary"
	case s.HasStandby() && name == s.StandbyServer():
		status.Role = "standby"
	}
	_, notByName := findVerb("start", name)
	switch {
	case status.State == running:
		status.State = "ready"
		if err := s.probe(ctx, name); err != nil {
			status.State, status.Why = "not ready", strings.Split(err.Error(), "\n")[0]
		}
	case status.State == paused:
		status.Remedy = "resume " + name
	case s.Ended && name == s.StandbyServer(): // on its old data it would be a second primary
		status.Remedy = "follow " + Postgres
	case notByName != nil:
		status.Remedy = "up"
	default:
		status.Remedy = "start " + name
	}
	return status
}

// PrintStatus writes Status as a table.
func (s *Stack) PrintStatus(ctx context.Context) error {
	services, active, err := s.Status(ctx)
	if services == nil {
		return err
	}
	s.printf("%s driver, %s\n", s.state.Driver, s.Dir)
	for _, one := range services {
		if one.Remedy != "" {
			one.Why = "end this: stack " + one.Remedy + s.dirFlag()
		}
		s.printf("  %-*s %-17s %-10s %-14s %s\n", nameWidth, one.Name, s.Addr(one.Name), one.State, one.ID,
			strings.TrimSpace(one.Role+" "+one.Why))
	}
	for _, fault := range active {
		s.printf("  fault: %s\n", fault)
	}
	return err
}

// probe asks a service, over the address that everybody uses, whether it is ready.
func (s *Stack) probe(ctx context.Context, name string) error {
	switch name {
	case s.Primary(), s.StandbyServer():
		return localserver.PingPostgres(ctx, s.Addr(name))
	case PgBouncer:
		return localserver.AskPgBouncer(ctx, s.Addr(name), "SHOW VERSION")
	case Redis, RedisReplica:
		return s.probeRedis(ctx, name)
	case Sentinel1, Sentinel2, Sentinel3:
		return probeSentinel(ctx, s.Addr(name))
	}
	_, err := Get(ctx, "http://"+s.Ops(name)+serviceOf(name).health)
	return err
}

// Get asks a URL once, and returns what it answers with status 200.
func Get(ctx context.Context, url string) (text []byte, err error) {
	ctx, cancel := context.WithTimeout(ctx, localserver.ProbeTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return nil, err
	}
	req.Close = true // a probe leaves no connection open
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	text, err = io.ReadAll(resp.Body)
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("GET %s: status %d: %.1000s", url, resp.StatusCode, bytes.TrimSpace(text))
	}
	return text, err
}
