package testenv

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/oncepay/oncepay/internal/stack"
)

const (
	// sentinelMaster is the name that the Sentinels know the servers by.
	sentinelMaster = "oncepay"

	// sentinelConfig has a primary taken for dead after half a second: quick for a test, slow against a busy machine's hiccups.
	sentinelConfig = `sentinel monitor ` + sentinelMaster + ` 127.0.0.1 %s 2
sentinel down-after-milliseconds ` + sentinelMaster + ` 500
sentinel failover-timeout ` + sentinelMaster + ` 2000
`
	// replicationUser is who the replica logs in as.
	replicationUser = "replication"
)

// ReplicatedRedis is a Redis with a replica, and three Sentinels that promote it when the primary is gone (Redis manual, "High
// availability with Redis Sentinel").
type ReplicatedRedis struct {
	// URL is redis+sentinel://….
	URL              string
	Primary, Replica *Server
	Sentinels        []*Server
}

// RedisSentinel starts one for this test alone, which takes some seconds. It consists of processes in any case.
func RedisSentinel(t testing.TB) *ReplicatedRedis {
	t.Helper()
	settings := []string{
		"--masteruser", replicationUser, "--masterauth", "any", "--user", replicationUser, "on", "nopass", "+@all",
		"--repl-diskless-sync-delay", "0", "--shutdown-timeout", "0",
	}
	r := &ReplicatedRedis{Primary: nativeRedis(t, stack.RedisConfig{Settings: settings})}
	port := r.Primary.port()
	r.Replica = nativeRedis(t, stack.RedisConfig{Settings: append(settings, "--replicaof", "127.0.0.1", port)})
	r.Replica.awaitLines([]any{"INFO", "replication"}, "master_link_status:up")
	var addrs []string
	for range 3 {
		sentinel := nativeRedis(t, stack.RedisConfig{ConfigFile: fmt.Sprintf(sentinelConfig, port), Settings: []string{"--sentinel"}})
		r.Sentinels, addrs = append(r.Sentinels, sentinel), append(addrs, sentinel.Addr)
	}
	for _, sentinel := range r.Sentinels {
		sentinel.awaitLines([]any{"INFO", "sentinel"},
			"master0:name="+sentinelMaster+",status=ok,address="+r.Primary.Addr+",slaves=1,sentinels=3")
	}
	r.URL = "redis+sentinel://" + strings.Join(addrs, ",") + "/" + sentinelMaster
	return r
}

// CutReplication keeps the replica from hearing of anything that is written from now on.
func (r *ReplicatedRedis) CutReplication() {
	r.Primary.t.Helper()
	r.Primary.Do("ACL", "SETUSER", replicationUser, "off")
	r.Primary.Do("CLIENT", "KILL", "TYPE", "REPLICA")
}

// AwaitPromotion waits until the replica is the primary, for all Sentinels.
func (r *ReplicatedRedis) AwaitPromotion() {
	r.Primary.t.Helper()
	for _, sentinel := range r.Sentinels {
		ctx, cancel := context.WithTimeout(context.Background(), readyTimeout)
		err := await(ctx, func(ctx context.Context) error {
			answer, err := sentinel.ask(ctx, "SENTINEL", "GET-MASTER-ADDR-BY-NAME", sentinelMaster)
			if err != nil {
				return err
			}
			if addr, ok := answer.([]any); !ok || len(addr) != 2 || fmt.Sprint(addr[0], ":", addr[1]) != r.Replica.Addr {
				return fmt.Errorf("the primary is %v", answer)
			}
			return nil
		})
		cancel()
		if err != nil {
			r.Primary.t.Fatalf("testenv: await the promotion of %s: %v", r.Replica.Addr, err)
		}
	}
	r.Replica.awaitLines([]any{"INFO", "replication"}, "role:master")
}
