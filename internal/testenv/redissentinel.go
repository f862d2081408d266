package testenv

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/oncepay/oncepay/internal/localserver"
	"github.com/oncepay/oncepay/internal/wait"
)

const (
	// sentinelMaster is the name that the Sentinels know the servers by.
	sentinelMaster = "oncepay"

	// sentinelConfig has a primary taken for dead after half a second: quick for a test, slow
	// against a busy machine's hiccups.
	sentinelConfig = `sentinel monitor ` + sentinelMaster + ` 127.0.0.1 %s 2
sentinel down-after-milliseconds ` + sentinelMaster + ` 500
sentinel failover-timeout ` + sentinelMaster + ` 2000
`
	// replicationUser is who the replica logs in as.
	replicationUser = "replication"
)

// ReplicatedRedis is a Redis with a replica, and three Sentinels that promote it when the primary
// is gone (Redis manual, "High availability with Redis Sentinel").
type ReplicatedRedis struct {
	// URL is redis+sentinel://…, or rediss+sentinel://…?ca_file=….
	URL              string
	Primary, Replica *Server
	Sentinels        []*Server

	replicaAddr string // as the Sentinels tell it
}

// RedisSentinel starts one for this test alone, which takes some seconds. It consists of processes
// in any case.
func RedisSentinel(t testing.TB) *ReplicatedRedis {
	t.Helper()
	return newReplicatedRedis(t, "redis", "", func() (string, []string) { return "", nil })
}

// RedisSentinelTLS is RedisSentinel with TLS on all connections, those between the servers
// included.
func RedisSentinelTLS(t testing.TB) *ReplicatedRedis {
	t.Helper()
	pair := newKeyPair(t)
	return newReplicatedRedis(t, "rediss", "?ca_file="+pair.certificate, func() (port string, settings []string) {
		port = pickPort(t)
		return port, append(pair.settings(port), "--tls-replication", "yes")
	})
}

// newReplicatedRedis asks listen for each server's port, if it is not its own, and for the settings
// that come with it.
func newReplicatedRedis(t testing.TB, scheme, query string, listen func() (port string, settings []string)) *ReplicatedRedis {
	t.Helper()
	start := func(cfg localserver.RedisConfig) (*Server, string) {
		port, settings := listen()
		cfg.Settings = append(settings, cfg.Settings...)
		server := nativeRedis(t, cfg)
		return server, cmp.Or(port, server.port())
	}
	settings := []string{
		"--masteruser", replicationUser, "--masterauth", "any", "--user", replicationUser, "on", "nopass", "+@all",
		"--repl-diskless-sync-delay", "0", "--shutdown-timeout", "0",
	}
	r := &ReplicatedRedis{}
	var primaryPort, replicaPort string
	r.Primary, primaryPort = start(localserver.RedisConfig{Settings: settings})
	r.Replica, replicaPort = start(localserver.RedisConfig{Settings: append(settings, "--replicaof", "127.0.0.1", primaryPort)})
	r.replicaAddr = "127.0.0.1:" + replicaPort
	r.Replica.awaitLines([]any{"INFO", "replication"}, "master_link_status:up")
	var addrs []string
	for range 3 {
		sentinel, port := start(localserver.RedisConfig{ConfigFile: fmt.Sprintf(sentinelConfig, primaryPort), Settings: []string{"--sentinel"}})
		r.Sentinels, addrs = append(r.Sentinels, sentinel), append(addrs, "127.0.0.1:"+port)
	}
	for _, sentinel := range r.Sentinels {
		sentinel.awaitLines([]any{"INFO", "sentinel"},
			"master0:name="+sentinelMaster+",status=ok,address=127.0.0.1:"+primaryPort+",slaves=1,sentinels=3")
	}
	r.URL = scheme + "+sentinel://" + strings.Join(addrs, ",") + "/" + sentinelMaster + query
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
		err := wait.Until(ctx, localserver.PollInterval, func(ctx context.Context) error {
			answer, err := sentinel.ask(ctx, "SENTINEL", "GET-MASTER-ADDR-BY-NAME", sentinelMaster)
			if err != nil {
				return err
			}
			if addr, ok := answer.([]any); !ok || len(addr) != 2 || fmt.Sprint(addr[0], ":", addr[1]) != r.replicaAddr {
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
