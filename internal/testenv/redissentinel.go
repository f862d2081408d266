package testenv

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/oncepay/oncepay/internal/localserver"
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

	replicaPort string // as the Sentinels tell it
}

// RedisSentinel starts one for this test alone, which takes some seconds. It consists of processes
// in any case.
func RedisSentinel(t testing.TB) *ReplicatedRedis {
	t.Helper()
	return newReplicatedRedis(t, "")
}

// RedisSentinelTLS is RedisSentinel with TLS on all connections, those between the servers
// included.
func RedisSentinelTLS(t testing.TB) *ReplicatedRedis {
	t.Helper()
	return newReplicatedRedis(t, newCertificate(t))
}

// newReplicatedRedis uses TLS if there is a certificate.
func newReplicatedRedis(t testing.TB, certificate string) *ReplicatedRedis {
	t.Helper()
	start := func(cfg localserver.Config) (server *Server, port string) {
		if certificate != "" {
			port = pickPort(t)
			cfg.Settings = slices.Concat(tlsSettings(port, certificate), []string{"--tls-replication", "yes"}, cfg.Settings)
		}
		server = newServer(t, redisKind, cfg)
		return server, cmp.Or(port, server.port())
	}
	settings := []string{
		"--masteruser", replicationUser, "--masterauth", "any", "--user", replicationUser, "on", "nopass", "+@all",
		"--repl-diskless-sync-delay", "0", "--shutdown-timeout", "0",
	}
	primary, primaryPort := start(localserver.Config{Settings: settings})
	replica, replicaPort := start(localserver.Config{Settings: append(settings, "--replicaof", "127.0.0.1", primaryPort)})
	r := &ReplicatedRedis{Primary: primary, Replica: replica, replicaPort: replicaPort}
	r.Replica.awaitLines([]any{"INFO", "replication"}, "master_link_status:up")
	var addrs []string
	for range 3 {
		sentinel, port := start(localserver.Config{ConfigFile: fmt.Sprintf(sentinelConfig, primaryPort), Settings: []string{"--sentinel"}})
		r.Sentinels, addrs = append(r.Sentinels, sentinel), append(addrs, "127.0.0.1:"+port)
	}
	for _, sentinel := range r.Sentinels {
		sentinel.awaitLines([]any{"INFO", "sentinel"},
			"master0:name="+sentinelMaster+",status=ok,address=127.0.0.1:"+primaryPort+",slaves=1,sentinels=3")
	}
	r.URL = "redis+sentinel://" + strings.Join(addrs, ",") + "/" + sentinelMaster
	if certificate != "" {
		r.URL = "rediss" + strings.TrimPrefix(r.URL, "redis") + "?ca_file=" + certificate
	}
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
		sentinel.awaitLines([]any{"SENTINEL", "GET-MASTER-ADDR-BY-NAME", sentinelMaster}, r.replicaPort)
	}
	r.Replica.awaitLines([]any{"INFO", "replication"}, "role:master")
}
