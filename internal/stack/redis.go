package stack

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"

	"github.com/oncepay/oncepay/internal/localserver"
)

// memorySettings bound what Redis holds. It then refuses writes and forgets nothing: what moves
// money fails closed. docker-compose.yml has the same.
var memorySettings = []string{"--maxmemory", "2gb", "--maxmemory-policy", "noeviction"}

// redisURL is where a replica of the service finds Redis.
func (d *nativeDriver) redisURL(replica string) string {
	if !d.IsReplicated() {
		return localserver.RedisURL(d.Via(replica, Redis))
	}
	return "redis+sentinel://" + d.Addr(Sentinel1) + "," + d.Addr(Sentinel2) + "," + d.Addr(Sentinel3) + "/" + localserver.MasterName
}

// prepareRedis makes a server the only one, or one of the pair. One that starts while the other is
// master starts as its replica, and so takes no writes that Sentinel would have it throw away
// seconds later.
func (d *nativeDriver) prepareRedis(ctx context.Context, cfg localserver.Config) (localserver.Command, error) {
	cfg.Settings = memorySettings
	if !d.IsReplicated() {
		return localserver.Redis.Command(ctx, cfg)
	}
	cfg.Settings = slices.Concat(localserver.ReplicationSettings, memorySettings)
	run, err := localserver.Redis.Command(ctx, cfg)
	if master := d.LikelyMaster(ctx); master != localserver.Loopback(cfg.Port) {
		host, port, _ := net.SplitHostPort(master)
		run.Once = []string{"--replicaof", host, port}
	}
	return run, err
}

// RedisMaster is the address (host:port) of the Redis that takes writes: the only one, or the one
// that Sentinel has appointed.
func (t *Topology) RedisMaster(ctx context.Context) (addr string, err error) {
	if !t.IsReplicated() {
		return t.Addr(Redis), nil
	}
	var errs []error
	for _, name := range sentinels {
		answer, err := localserver.AskRedis(ctx, t.Addr(name), "SENTINEL", "GET-MASTER-ADDR-BY-NAME", localserver.MasterName)
		if err == nil && len(answer) == 2 {
			return net.JoinHostPort(answer[0], answer[1]), nil
		}
		errs = append(errs, fmt.Errorf("%s: %w", name, err))
	}
	return "", fmt.Errorf("no sentinel tells who is master: %w", errors.Join(errs...))
}

// LikelyMaster is the server that Sentinel has appointed; without sentinels the one that takes
// itself for the master, and otherwise the first one.
func (t *Topology) LikelyMaster(ctx context.Context) (addr string) {
	if master, err := t.RedisMaster(ctx); err == nil {
		return master
	}
	for _, name := range redisPair {
		if info, _ := replicationInfo(ctx, t.Addr(name)); strings.Contains(info, "role:master") {
			return t.Addr(name)
		}
	}
	return t.Addr(Redis)
}

// redisRole is what Sentinel holds a server for.
func (t *Topology) redisRole(ctx context.Context, name string) string {
	switch master, err := t.RedisMaster(ctx); {
	case err != nil:
		return "role unknown"
	case master == t.Addr(name):
		return "master"
	}
	return "replica"
}

// probeRedis also wants a replicated server to be what Sentinel takes it for: the master, or a
// replica that is connected to it. Without sentinels, whatever it is must do.
func (t *Topology) probeRedis(ctx context.Context, name string) error {
	if !t.IsReplicated() {
		return localserver.PingRedis(ctx, t.Addr(name))
	}
	info, err := replicationInfo(ctx, t.Addr(name))
	if err != nil {
		return err
	}
	isMaster := strings.Contains(info, "role:master")
	if !isMaster && !strings.Contains(info, "master_link_status:up") {
		return errors.New("its link to the master is down")
	}
	if master, err := t.RedisMaster(ctx); err == nil && isMaster != (master == t.Addr(name)) {
		return fmt.Errorf("it does not know what Sentinel says: %s is master", master)
	}
	return nil
}

// replicationInfo reads a server's INFO replication.
func replicationInfo(ctx context.Context, addr string) (string, error) {
	lines, err := localserver.AskRedis(ctx, addr, "INFO", "replication")
	return strings.Join(lines, "\n"), err
}

// probeSentinel wants a sentinel that has found the two others and the replica: before, it could
// not appoint a master.
func probeSentinel(ctx context.Context, addr string) error {
	fields, err := localserver.AskRedis(ctx, addr, "SENTINEL", "MASTER", localserver.MasterName)
	found := strings.Join(fields, " ")
	if err == nil && !(strings.Contains(found, "num-slaves 1 ") && strings.Contains(found, "num-other-sentinels 2 ")) {
		err = errors.New("it has not found the replica and the two other sentinels yet")
	}
	return err
}

// setReplication keeps the replica from following the master, which goes on taking writes, or lets
// it in again; it tries once a second. Both servers are told, as Sentinel may make either one the
// master. One that does not answer is no error as long as it is not the master: it forgets the user
// anyway when it starts again.
func (t *Topology) setReplication(ctx context.Context, on bool) error {
	commands := [][]any{{"ACL", "SETUSER", localserver.ReplicationUser, "on"}}
	if !on {
		commands = [][]any{{"ACL", "SETUSER", localserver.ReplicationUser, "off"}, {"CLIENT", "KILL", "TYPE", "replica"}}
	}
	master, err := t.RedisMaster(ctx)
	if err != nil {
		return err
	}
	for _, name := range redisPair {
		for _, command := range commands {
			if _, told := localserver.AskRedis(ctx, t.Addr(name), command...); told != nil && t.Addr(name) == master {
				err = errors.Join(err, fmt.Errorf("%v: %w", command, told))
			}
		}
	}
	return err
}

// replicationIsCut looks at both servers, too. One that is gone cuts no connection.
func (t *Topology) replicationIsCut(ctx context.Context) bool {
	return slices.ContainsFunc(redisPair, func(name string) bool {
		users, _ := localserver.AskRedis(ctx, t.Addr(name), "ACL", "LIST")
		return strings.Contains(strings.Join(users, "\n"), "user "+localserver.ReplicationUser+" off ")
	})
}
