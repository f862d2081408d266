package stack

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/oncepay/oncepay/internal/localserver"
)

// The kinds of Redis that a stack may have.
const (
	// Single is one server.
	Single = "single"
	// Sentinel is a primary and a replica of it, and three sentinels that appoint the replica when
	// the primary is gone.
	Sentinel = "sentinel"
)

var (
	sentinels        = []string{Sentinel1, Sentinel2, Sentinel3}
	sentinelServices = append([]string{RedisReplica}, sentinels...)
)

const (
	// masterName is what the sentinels call the pair of servers.
	masterName = "oncepay"

	// replicationUser is who a replica logs in as at its master, whichever of the two is which. To
	// switch it off is what cuts them: the proxy can't, as Sentinel points a replica at the same
	// address that it returns to clients.
	replicationUser = "replication"
)

// replication is the connection between the two servers; no port, because it doesn't go through the
// proxy.
var replication = edge{from: RedisReplica, to: Redis}

// isReplicated reports whether this stack's Redis is of the kind Sentinel.
func (s *Stack) isReplicated() bool { return s.state.data.Redis == Sentinel }

// services are those that this stack has, in the order in which they are listed.
func (s *Stack) services() []string {
	list := slices.Clone(Services)
	if s.isReplicated() {
		list = slices.Insert(list, slices.Index(list, Redis)+1, sentinelServices...)
	}
	if s.hasStandby() {
		list = slices.Insert(list, slices.Index(list, Postgres)+1, PostgresStandby)
	}
	if s.direct {
		list = slices.DeleteFunc(list, func(name string) bool { return name == Proxy })
	}
	return list
}

// findEdge returns the edge that can be cut between two services of this stack.
func (s *Stack) findEdge(a, b string) (edge, error) {
	e, err := findEdge(a, b)
	if err == nil && s.direct {
		return e, fmt.Errorf("%s is a direct connection: partition, slow and cut need the fault proxy, so a stack that was brought up "+
			"without --direct", e)
	}
	if err == nil && s.isReplicated() && e.to == Redis {
		err = fmt.Errorf("with Sentinel, %s learns where Redis is and goes there itself, past the switchboard; "+
			"what works: pause redis, kill redis, partition %s %s", e.from, replication.from, replication.to)
	}
	return e, err
}

// redisURL is where a replica finds Redis.
func (s *Stack) redisURL(replica string) string {
	if !s.isReplicated() {
		return localserver.RedisURL(s.via(replica, Redis))
	}
	addrs := make([]string, len(sentinels))
	for i, name := range sentinels {
		addrs[i] = s.addr(name)
	}
	return "redis+sentinel://" + strings.Join(addrs, ",") + "/" + masterName
}

// RedisMaster is the address (host:port) of the Redis that takes writes: the only one, or the one
// that Sentinel has appointed.
func (s *Stack) RedisMaster(ctx context.Context) (addr string, err error) {
	if !s.isReplicated() {
		return s.addr(Redis), nil
	}
	var errs []error
	for _, name := range sentinels {
		addr, err := appointed(ctx, s.addr(name))
		if err == nil {
			return addr, nil
		}
		errs = append(errs, fmt.Errorf("%s: %w", name, err))
	}
	return "", fmt.Errorf("no sentinel tells who is master: %w", errors.Join(errs...))
}

// appointed asks a sentinel who is master.
func appointed(ctx context.Context, sentinel string) (addr string, err error) {
	err = askOnce(ctx, sentinel, func(ctx context.Context, client *redis.Client) error {
		command := redis.NewStringSliceCmd(ctx, "SENTINEL", "GET-MASTER-ADDR-BY-NAME", masterName)
		if err := client.Process(ctx, command); err != nil {
			return err
		}
		addr = net.JoinHostPort(command.Val()[0], command.Val()[1])
		return nil
	})
	return addr, err
}

// askOnce talks to a server over a connection of its own.
func askOnce(ctx context.Context, addr string, talk func(context.Context, *redis.Client) error) error {
	if err := localserver.PingRedis(ctx, addr); err != nil { // the client would log the refusal
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	client := redis.NewClient(&redis.Options{Addr: addr, Protocol: 2, MaxRetries: -1, ContextTimeoutEnabled: true, DisableIdentity: true})
	defer func() { _ = client.Close() }()
	return talk(ctx, client)
}

// redisRole is what Sentinel holds a server for.
func (s *Stack) redisRole(ctx context.Context, name string) string {
	master, err := s.RedisMaster(ctx)
	switch {
	case err != nil:
		return "role unknown"
	case master == s.addr(name):
		return "master"
	default:
		return "replica"
	}
}

// probeRedis also wants a replicated server to be what Sentinel takes it for: the master, or a
// replica that is connected to it.
func (s *Stack) probeRedis(ctx context.Context, name string) error {
	addr := s.addr(name)
	if err := localserver.PingRedis(ctx, addr); err != nil || !s.isReplicated() {
		return err
	}
	info, err := replicationInfo(ctx, addr)
	if err != nil {
		return err
	}
	isMaster := info["role"] == "master"
	if !isMaster && info["master_link_status"] != "up" {
		return errors.New("its link to the master is " + info["master_link_status"])
	}
	master, err := s.RedisMaster(ctx)
	if err == nil && isMaster != (master == addr) { // without sentinels, whatever it is must do
		return fmt.Errorf("it is a %s, but Sentinel says that %s is master", info["role"], master)
	}
	return nil
}

// replicationInfo reads a server's INFO replication.
func replicationInfo(ctx context.Context, addr string) (fields map[string]string, err error) {
	fields = map[string]string{}
	err = askOnce(ctx, addr, func(ctx context.Context, client *redis.Client) error {
		text, err := client.Info(ctx, "replication").Result()
		for line := range strings.Lines(text) {
			if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
				fields[name] = value
			}
		}
		return err
	})
	return fields, err
}

// probeSentinel wants a sentinel that has found the two others and the replica: before, it could
// not appoint anybody.
func probeSentinel(ctx context.Context, addr string) error {
	return askOnce(ctx, addr, func(ctx context.Context, client *redis.Client) error {
		command := redis.NewMapStringStringCmd(ctx, "SENTINEL", "MASTER", masterName)
		if err := client.Process(ctx, command); err != nil {
			return err
		}
		others, replicas := command.Val()["num-other-sentinels"], command.Val()["num-slaves"]
		if others != strconv.Itoa(len(sentinels)-1) || replicas != "1" {
			return fmt.Errorf("it knows of %s other sentinels and %s replicas", others, replicas)
		}
		return nil
	})
}

// ensureRedis brings up one server, or the pair and then the sentinels, which would take a pair
// that is about to start for dead.
func (n *native) ensureRedis(ctx context.Context) error {
	if err := n.ensure(ctx, Redis); err != nil || !n.isReplicated() {
		return err
	}
	if err := n.ensure(ctx, RedisReplica); err != nil {
		return err
	}
	return n.ensureAll(ctx, sentinels...)
}

// replicate makes a server one of the pair. One that starts while the other is master starts as its
// replica, and so takes no writes that Sentinel would have it throw away seconds later.
func (n *native) replicate(ctx context.Context, name string, run *localserver.Command) error {
	run.Args = append(run.Args,
		"--user", replicationUser, "on", "nopass", "+psync", "+replconf", "+ping",
		"--masteruser", replicationUser, "--masterauth", "any",
		"--repl-diskless-sync-delay", "0") // there is one replica: no other to wait for
	if master := n.likelyMaster(ctx); master != n.addr(name) {
		host, port, err := net.SplitHostPort(master)
		if err != nil {
			return err
		}
		run.Once = []string{"--replicaof", host, port}
	}
	return nil
}

// likelyMaster is whom Sentinel has appointed; without sentinels the server that takes itself for
// the master, and else the first one.
func (n *native) likelyMaster(ctx context.Context) string {
	if master, err := n.RedisMaster(ctx); err == nil {
		return master
	}
	for _, name := range []string{Redis, RedisReplica} {
		if info, err := replicationInfo(ctx, n.addr(name)); err == nil && info["role"] == "master" {
			return n.addr(name)
		}
	}
	return n.addr(Redis)
}

// sentinelConf is what a sentinel starts with (sentinel.conf): the fast end of what production
// uses, so that clients do not wait long for a failover. Its name of forty digits stays the same
// over a restart, so that the others know it again.
const sentinelConf = `bind 127.0.0.1
port %[1]d
sentinel myid %040[1]d
sentinel monitor %[2]s %[3]s 2
sentinel down-after-milliseconds %[2]s 1000
sentinel failover-timeout %[2]s 3000
`

// prepareSentinel writes a sentinel's configuration anew for each start: what the last one had
// learned and written into it may be outdated, and the others tell the rest.
func (n *native) prepareSentinel(ctx context.Context, name, dir, log string) (localserver.Command, error) {
	run, _, err := localserver.RedisCommand(localserver.RedisConfig{Dir: dir, Port: n.port(name), Log: log})
	if err != nil {
		return run, err
	}
	host, port, err := net.SplitHostPort(n.likelyMaster(ctx))
	if err != nil {
		return run, err
	}
	path := filepath.Join(run.Dir, "sentinel.conf")
	text := fmt.Sprintf(sentinelConf, n.port(name), masterName, host+" "+port)
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		return run, fmt.Errorf("configure %s: %w", name, err)
	}
	if run.User != nil {
		err = os.Chown(path, int(run.User.Uid), int(run.User.Gid))
	}
	run.Args, run.Content = []string{path, "--sentinel"}, sentinelConf
	return run, err
}

// cutReplication keeps the replica from following the master, which goes on taking writes.
func (s *Stack) cutReplication(ctx context.Context) error {
	return s.tellServers(ctx, []any{"ACL", "SETUSER", replicationUser, "off"}, []any{"CLIENT", "KILL", "TYPE", "replica"})
}

// healReplication lets the replica in again; it tries once a second.
func (s *Stack) healReplication(ctx context.Context) error {
	return s.tellServers(ctx, []any{"ACL", "SETUSER", replicationUser, "on"})
}

// tellServers sends commands to both servers, as Sentinel may make either one the master. One that
// doesn't answer is no error as long as it isn't the master: it forgets them anyway when it starts
// again.
func (s *Stack) tellServers(ctx context.Context, commands ...[]any) error {
	master, err := s.RedisMaster(ctx)
	if err != nil {
		return err
	}
	for _, name := range []string{Redis, RedisReplica} {
		told := tellRedis(ctx, s.addr(name), commands...)
		if s.addr(name) == master {
			err = told
		}
	}
	return err
}

func tellRedis(ctx context.Context, addr string, commands ...[]any) error {
	return askOnce(ctx, addr, func(ctx context.Context, client *redis.Client) error {
		for _, command := range commands {
			if err := client.Do(ctx, command...).Err(); err != nil {
				return fmt.Errorf("%v: %w", command, err)
			}
		}
		return nil
	})
}

// replicationIsCut looks at both servers, too. One that is gone cuts no connection.
func (s *Stack) replicationIsCut(ctx context.Context) bool {
	return slices.ContainsFunc([]string{Redis, RedisReplica}, func(name string) bool {
		var users []string
		_ = askOnce(ctx, s.addr(name), func(ctx context.Context, client *redis.Client) error {
			users = client.ACLList(ctx).Val()
			return nil
		})
		return slices.ContainsFunc(users, func(line string) bool { return strings.HasPrefix(line, "user "+replicationUser+" off ") })
	})
}
