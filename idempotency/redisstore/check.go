package redisstore

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/oncepay/oncepay/idempotency"
)

// oldestMajor is the first version that supports SET with both NX and GET.
const oldestMajor = 7

// NoEviction is the only maxmemory-policy that forgets nothing (redis.conf).
const NoEviction = "noeviction"

// CheckServer returns an error if the server cannot keep records: if it is older than Redis 7.0,
// or does not support SET with NX and GET. Of a cluster it checks every master. Call it at the
// start of the program. It writes a key that expires after a second.
func CheckServer(ctx context.Context, client redis.UniversalClient) error {
	servers, err := masters(ctx, client)
	if err != nil {
		return fmt.Errorf("check redis: %w", translate(err))
	}
	for _, server := range servers {
		version, err := infoField(ctx, server, "server", "redis_version")
		if err != nil && !redis.HasErrorPrefix(err, "NOPERM") { // without permission for INFO, the probe decides
			return fmt.Errorf("check redis: %w", translate(err))
		}
		if tooOld(version) {
			return fmt.Errorf("check redis: version %s is too old, %d.0 is needed for SET with NX and GET", version, oldestMajor)
		}
		if err := probe(ctx, server, keyAt(ctx, client, server)); err != nil {
			return fmt.Errorf("check redis: SET NX GET: %w", err)
		}
	}
	return nil
}

// EvictionPolicy returns the server's maxmemory-policy; of a cluster's masters the first that is
// not noeviction. With another policy, a full server forgets records before they expire. It
// returns "" if the server does not say, and an error if the user may not call INFO.
func EvictionPolicy(ctx context.Context, client redis.UniversalClient) (policy string, err error) {
	servers, err := masters(ctx, client)
	for _, server := range servers {
		policy, err = infoField(ctx, server, "memory", "maxmemory_policy")
		if err != nil || policy != NoEviction {
			break
		}
	}
	if err != nil {
		return "", fmt.Errorf("ask redis for its eviction policy: %w", translate(err))
	}
	return policy, nil
}

// masters returns clients of the servers that take writes: one, or several in a cluster.
func masters(ctx context.Context, client redis.UniversalClient) (servers []redis.UniversalClient, err error) {
	cluster, ok := client.(*redis.ClusterClient)
	if !ok {
		return []redis.UniversalClient{client}, nil
	}
	var mu sync.Mutex
	err = cluster.ForEachMaster(ctx, func(_ context.Context, server *redis.Client) error {
		mu.Lock()
		defer mu.Unlock()
		servers = append(servers, server)
		return nil
	})
	if err == nil && len(servers) == 0 {
		err = errors.New("no node of the cluster keeps any keys")
	}
	return servers, err
}

// infoField returns a line of INFO, or "" if there is none.
func infoField(ctx context.Context, server redis.UniversalClient, section, name string) (string, error) {
	info, err := server.Info(ctx, section).Result()
	return field(info, name), err
}

// field returns the value of a line of INFO's reply, or "".
func field(info, name string) string {
	for line := range strings.Lines(info) {
		if value, found := strings.CutPrefix(strings.TrimSpace(line), name+":"); found {
			return value
		}
	}
	return ""
}

func tooOld(version string) bool {
	major, _, _ := strings.Cut(version, ".")
	n, err := strconv.Atoi(major)
	return err == nil && n < oldestMajor
}

// keyAt returns a key that this server keeps: in a cluster, each keeps some. It stops searching
// after as many tries as there are slots.
func keyAt(ctx context.Context, client, server redis.UniversalClient) (key string) {
	const slots = 16384
	for range slots {
		key = DefaultPrefix + "probe:" + string(idempotency.NewOwner())
		cluster, ok := client.(*redis.ClusterClient)
		if !ok {
			break
		}
		if keeper, err := cluster.MasterForKey(ctx, key); err != nil || keeper == server {
			break
		}
	}
	return key
}

// probe sets a new key twice: the second SET must return the first value.
func probe(ctx context.Context, server redis.UniversalClient, key string) error {
	args := redis.SetArgs{Mode: "NX", Get: true, TTL: time.Second}
	if err := server.SetArgs(ctx, key, "first", args).Err(); err != nil && !errors.Is(err, redis.Nil) {
		return unfit(err)
	}
	kept, err := server.SetArgs(ctx, key, "second", args).Result()
	if err != nil {
		return unfit(err)
	}
	if kept != "first" {
		return fmt.Errorf("answered %q instead of what was there", kept)
	}
	return nil
}

// unfit is translate, except that a server that does not know the syntax is not just
// unavailable: it will not know it later either.
func unfit(err error) error {
	if redis.HasErrorPrefix(err, "syntax error") {
		return err
	}
	return translate(err)
}
