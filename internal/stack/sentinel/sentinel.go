// Package sentinel asks and tells a Redis that Sentinel looks after: who is master, whether the
// servers are what Sentinel takes them for, and how to cut the replica off. It also has the
// configuration that a sentinel starts with.
package sentinel

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"

	"github.com/oncepay/oncepay/internal/localserver"
	"github.com/oncepay/oncepay/internal/stack/topology"
)

// MasterName is what the sentinels call the pair of servers.
const MasterName = "oncepay"

// Config is what a sentinel starts with (sentinel.conf), for its port, MasterName, and the master's
// host and port: the fast end of what production uses, so that clients do not wait long for a
// failover. Its name of forty digits stays the same over a restart, so that the others know it
// again. See https://redis.io/docs/latest/operate/oss_and_stack/management/sentinel/.
const Config = `sentinel myid %040[1]d
sentinel monitor %[2]s %[3]s 2
sentinel down-after-milliseconds %[2]s 1000
sentinel failover-timeout %[2]s 3000
`

// replicationUser is the name with which a replica logs in at its master, whichever of the two that
// is. Switching the user off is what cuts them: the proxy cannot, because Sentinel points a replica
// at the same address that it returns to clients.
const replicationUser = "replication"

// ReplicationArgs are the arguments with which both servers of the pair start.
func ReplicationArgs() []string {
	return []string{
		"--user", replicationUser, "on", "nopass", "+psync", "+replconf", "+ping",
		"--masteruser", replicationUser, "--masterauth", "any",
		"--repl-diskless-sync-delay", "0", // there is one replica: no other to wait for
	}
}

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
		answer, err := localserver.AskRedis(ctx, t.Addr(name), "SENTINEL", "GET-MASTER-ADDR-BY-NAME", MasterName)
		if err == nil && len(answer) == 2 {
			return net.JoinHostPort(answer[0], answer[1]), nil
		}
		errs = append(errs, fmt.Errorf("%s: %w", name, err))
	}
	return "", fmt.Errorf("no sentinel tells who is master: %w", errors.Join(errs...))
}

// LikelyMaster is the server that Sentinel has appointed; without sentinels the one that takes
// itself for the master, and otherwise the first one.
func LikelyMaster(ctx context.Context, t *topology.Topology) (addr string) {
	if master, err := Master(ctx, t); err == nil {
		return master
	}
	for _, name := range topology.RedisPair {
		if info, _ := replicationInfo(ctx, t.Addr(name)); info["role"] == "master" {
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
	if !t.IsReplicated() {
		return localserver.PingRedis(ctx, addr)
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
	lines, err := localserver.AskRedis(ctx, addr, "INFO", "replication")
	fields = map[string]string{}
	for _, line := range lines {
		name, value, _ := strings.Cut(line, ":")
		fields[name] = value
	}
	return fields, err
}

// Probe wants a sentinel that has found the two others and the replica: before, it could not
// appoint a master.
func Probe(ctx context.Context, addr string) error {
	fields, err := localserver.AskRedis(ctx, addr, "SENTINEL", "MASTER", MasterName)
	if err != nil {
		return err
	}
	known := map[string]string{}
	for pair := range slices.Chunk(fields, 2) {
		known[pair[0]] = pair[len(pair)-1]
	}
	others, replicas := known["num-other-sentinels"], known["num-slaves"]
	if others != fmt.Sprint(len(topology.Sentinels)-1) || replicas != "1" {
		return fmt.Errorf("it knows of %s other sentinels and %s replicas", others, replicas)
	}
	return nil
}

// CutReplication keeps the replica from following the master, which goes on taking writes.
func CutReplication(ctx context.Context, t *topology.Topology) error {
	return tellServers(ctx, t, []any{"ACL", "SETUSER", replicationUser, "off"}, []any{"CLIENT", "KILL", "TYPE", "replica"})
}

// HealReplication lets the replica in again; it tries once a second.
func HealReplication(ctx context.Context, t *topology.Topology) error {
	return tellServers(ctx, t, []any{"ACL", "SETUSER", replicationUser, "on"})
}

// tellServers sends commands to both servers, as Sentinel may make either one the master. One that
// does not answer is no error as long as it is not the master: it forgets them anyway when it
// starts again.
func tellServers(ctx context.Context, t *topology.Topology, commands ...[]any) error {
	master, err := Master(ctx, t)
	if err != nil {
		return err
	}
	for _, name := range topology.RedisPair {
		for _, command := range commands {
			if _, told := localserver.AskRedis(ctx, t.Addr(name), command...); told != nil && t.Addr(name) == master {
				err = errors.Join(err, fmt.Errorf("%v: %w", command, told))
			}
		}
	}
	return err
}

// ReplicationIsCut looks at both servers, too. One that is gone cuts no connection.
func ReplicationIsCut(ctx context.Context, t *topology.Topology) bool {
	return slices.ContainsFunc(topology.RedisPair, func(name string) bool {
		users, _ := localserver.AskRedis(ctx, t.Addr(name), "ACL", "LIST")
		return slices.ContainsFunc(users, func(line string) bool { return strings.HasPrefix(line, "user "+replicationUser+" off ") })
	})
}
