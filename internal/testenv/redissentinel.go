package testenv

import (
	"cmp"
	"slices"
	"strings"
	"testing"

	"github.com/oncepay/oncepay/internal/localserver"
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
	start := func(of localserver.Kind, settings ...string) (server *Server, port string) {
		if certificate != "" {
			port = pickPort(t)
			settings = slices.Concat(tlsSettings(port, certificate), []string{"--tls-replication", "yes"}, settings)
		}
		server = newServer(t, of, localserver.Config{Settings: settings})
		return server, cmp.Or(port, server.port())
	}
	settings := slices.Concat(localserver.ReplicationSettings, []string{"--shutdown-timeout", "0"})
	primary, primaryPort := start(localserver.Redis, settings...)
	replica, replicaPort := start(localserver.Redis, append(settings, "--replicaof", "127.0.0.1", primaryPort)...)
	r := &ReplicatedRedis{Primary: primary, Replica: replica, replicaPort: replicaPort}
	r.Replica.awaitLines([]any{"INFO", "replication"}, "master_link_status:up")
	var addrs []string
	for range 3 {
		sentinel, port := start(localserver.Sentinel("127.0.0.1:" + primaryPort))
		r.Sentinels, addrs = append(r.Sentinels, sentinel), append(addrs, "127.0.0.1:"+port)
	}
	for _, sentinel := range r.Sentinels {
		sentinel.awaitLines([]any{"INFO", "sentinel"},
			"master0:name="+localserver.MasterName+",status=ok,address=127.0.0.1:"+primaryPort+",slaves=1,sentinels=3")
	}
	r.URL = "redis+sentinel://" + strings.Join(addrs, ",") + "/" + localserver.MasterName
	if certificate != "" {
		r.URL = "rediss" + strings.TrimPrefix(r.URL, "redis") + "?ca_file=" + certificate
	}
	return r
}

// CutReplication keeps the replica from hearing of anything that is written from now on.
func (r *ReplicatedRedis) CutReplication() {
	r.Primary.t.Helper()
	r.Primary.Do("ACL", "SETUSER", localserver.ReplicationUser, "off")
	r.Primary.Do("CLIENT", "KILL", "TYPE", "REPLICA")
}

// AwaitPromotion waits until the replica is the primary, for all Sentinels.
func (r *ReplicatedRedis) AwaitPromotion() {
	r.Primary.t.Helper()
	for _, sentinel := range r.Sentinels {
		sentinel.awaitLines([]any{"SENTINEL", "GET-MASTER-ADDR-BY-NAME", localserver.MasterName}, r.replicaPort)
	}
	r.Replica.awaitLines([]any{"INFO", "replication"}, "role:master")
}
