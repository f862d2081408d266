// Package sentinel asks and tells a Redis that Sentinel looks after: who is master, whether the
// servers are what Sentinel takes them for, and how to cut the replica off. It also has the
// configuration that a sentinel starts with.
package sentinel

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/oncepay/oncepay/internal/localserver"
	"github.com/oncepay/oncepay/internal/stack/topology"
)

// MasterName is what the sentinels call the pair of servers.
const MasterName = "oncepay"

// Config is what a sentinel starts with (sentinel.conf), for its port, MasterName, and the master's
// host and port: the fast end of what production uses, so that clients do not wait long for a
// failover. Its name of forty digits stays the same over a restart, so that the others know it
// again. See https://redis.io/docs/latest/operate/oss_and_stack/management/sentinel/.
const Config = `bind 127.0.0.1
port %[1]d
sentinel myid %040[1]d
sentinel monitor %[2]s %[3]s 2
sentinel down-after-milliseconds %[2]s 1000
sentinel failover-timeout %[2]s 3000
`

// URL is where a replica of the service finds the master.
func URL(t *topology.Topology) string {
	addrs := make([]string, len(topology.Sentinels))
	for i, name := range topology.Sentinels {
		addrs[i] = t.Addr(name)
	}
	return "redis+sentinel://" + strings.Join(addrs, ",") + "/" + MasterName
}

// Master is the address (host:port) of the Redis that takes writes: the only one, or the one that
// Sentinel has appointed.
func Master(ctx context.Context, t *topology.Topology) (addr string, err error) {
	if !t.IsReplicated() {
		return t.Addr(topology.Redis), nil
	}
	var errs []error
	for _, name := range topology.Sentinels {
		addr, err := appointed(ctx, t.Addr(name))
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
		command := redis.NewStringSliceCmd(ctx, "SENTINEL", "GET-MASTER-ADDR-BY-NAME", MasterName)
		if err := client.Process(ctx, command); err != nil {
			return err
		}
		addr = net.JoinHostPort(command.Val()[0], command.Val()[1])
		return nil
	})
	return addr, err
}

// LikelyMaster is the server that Sentinel has appointed; without sentinels the one that takes
// itself for the master, and otherwise the first one.
func LikelyMaster(ctx context.Context, t *topology.Topology) (addr string) {
	if master, err := Master(ctx, t); err == nil {
		return master
	}
	for _, name := range topology.RedisPair {
		if info, err := replicationInfo(ctx, t.Addr(name)); err == nil && info["role"] == "master" {
			return t.Addr(name)
		}
	}
	return t.Addr(topology.Redis)
}

// Role is what Sentinel holds a server for.
func Role(ctx context.Context, t *topology.Topology, name string) string {
	master, err := Master(ctx, t)
	switch {
	case err != nil:
		return "role unknown"
	case master == t.Addr(name):
		return "master"
	default:
		return "replica"
	}
}

// ProbeRedis also wants a replicated server to be what Sentinel takes it for: the master, or a
// replica that is connected to it.
func ProbeRedis(ctx context.Context, t *topology.Topology, name string) error {
	addr := t.Addr(name)
	if err := localserver.PingRedis(ctx, addr); err != nil || !t.IsReplicated() {
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
	master, err := Master(ctx, t)
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

// Probe wants a sentinel that has found the two others and the replica: before, it could not
// appoint a master.
func Probe(ctx context.Context, addr string) error {
	return askOnce(ctx, addr, func(ctx context.Context, client *redis.Client) error {
		command := redis.NewMapStringStringCmd(ctx, "SENTINEL", "MASTER", MasterName)
		if err := client.Process(ctx, command); err != nil {
			return err
		}
		others, replicas := command.Val()["num-other-sentinels"], command.Val()["num-slaves"]
		if others != strconv.Itoa(len(topology.Sentinels)-1) || replicas != "1" {
			return fmt.Errorf("it knows of %s other sentinels and %s replicas", others, replicas)
		}
		return nil
	})
}

// askOnce talks to a server over a connection of its own.
func askOnce(ctx context.Context, addr string, talk func(context.Context, *redis.Client) error) error {
	if err := localserver.PingRedis(ctx, addr); err != nil { // the client would log the refusal
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, localserver.ProbeTimeout)
	defer cancel()
	client := redis.NewClient(&redis.Options{Addr: addr, Protocol: 2, MaxRetries: -1, ContextTimeoutEnabled: true, DisableIdentity: true})
	defer func() { _ = client.Close() }()
	return talk(ctx, client)
}
