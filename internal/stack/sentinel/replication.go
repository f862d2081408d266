package sentinel

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/oncepay/oncepay/internal/stack/topology"
)

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
		told := tell(ctx, t.Addr(name), commands...)
		if t.Addr(name) == master {
			err = told
		}
	}
	return err
}

func tell(ctx context.Context, addr string, commands ...[]any) error {
	return askOnce(ctx, addr, func(ctx context.Context, client *redis.Client) error {
		for _, command := range commands {
			if err := client.Do(ctx, command...).Err(); err != nil {
				return fmt.Errorf("%v: %w", command, err)
			}
		}
		return nil
	})
}

// ReplicationIsCut looks at both servers, too. One that is gone cuts no connection.
func ReplicationIsCut(ctx context.Context, t *topology.Topology) bool {
	return slices.ContainsFunc(topology.RedisPair, func(name string) bool {
		var users []string
		_ = askOnce(ctx, t.Addr(name), func(ctx context.Context, client *redis.Client) error {
			users = client.ACLList(ctx).Val()
			return nil
		})
		return slices.ContainsFunc(users, func(line string) bool { return strings.HasPrefix(line, "user "+replicationUser+" off ") })
	})
}
