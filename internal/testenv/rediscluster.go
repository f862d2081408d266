package testenv

import (
	"strings"
	"testing"

	"github.com/oncepay/oncepay/internal/localserver"
)

// clusterSlots are the first slots of the masters of a [ClusteredRedis], and the end.
var clusterSlots = []int{0, 5461, 10923, 16384}

// ClusteredRedis is a Redis Cluster of three masters that share the keys (Redis manual, "Scale with
// Redis Cluster").
type ClusteredRedis struct {
	// URL is redis+cluster://…, TLSURL is rediss+cluster://…?ca_file=… for the same.
	URL, TLSURL string
	// Masters are in the order of their slots: 0 to 5460, 5461 to 10922, 10923 to 16383.
	Masters []*Server
}

// RedisCluster starts one for this test alone, which takes some seconds. It consists of processes
// in any case.
func RedisCluster(t testing.TB) *ClusteredRedis {
	t.Helper()
	r, pair := &ClusteredRedis{}, newKeyPair(t)
	var addrs, tlsAddrs []string
	for i := range len(clusterSlots) - 1 {
		master, bus, tlsAddr := newClusterNode(t, pair)
		master.Do("CLUSTER", "SET-CONFIG-EPOCH", i+1)
		master.Do("CLUSTER", "ADDSLOTSRANGE", clusterSlots[i], clusterSlots[i+1]-1)
		if i > 0 {
			r.Masters[0].Do("CLUSTER", "MEET", "127.0.0.1", master.port(), bus)
		}
		r.Masters, addrs, tlsAddrs = append(r.Masters, master), append(addrs, master.Addr), append(tlsAddrs, tlsAddr)
	}
	for _, master := range r.Masters {
		master.awaitLines([]any{"CLUSTER", "INFO"}, "cluster_state:ok", "cluster_known_nodes:3", "cluster_size:3")
	}
	r.URL = "redis+cluster://" + strings.Join(addrs, ",")
	r.TLSURL = "rediss+cluster://" + strings.Join(tlsAddrs, ",") + "?ca_file=" + pair.certificate
	return r
}

// RedisClusterOfOne starts a cluster whose only node has all keys, for this test alone. Its URL is
// redis+cluster://….
func RedisClusterOfOne(t testing.TB) *Server {
	t.Helper()
	node, _, _ := newClusterNode(t, newKeyPair(t))
	node.Do("CLUSTER", "ADDSLOTSRANGE", 0, clusterSlots[len(clusterSlots)-1]-1)
	node.awaitLines([]any{"CLUSTER", "INFO"}, "cluster_state:ok")
	node.URL = "redis+cluster://" + node.Addr
	return node
}

// newClusterNode starts a node that knows no other and has no slots.
func newClusterNode(t testing.TB, pair keyPair) (node *Server, bus, tlsAddr string) {
	t.Helper()
	tlsPort := pickPort(t)
	bus = pickPort(t)
	node = nativeRedis(t, localserver.Config{Settings: append(pair.settings(tlsPort),
		"--tls-cluster", "yes", // so that it tells clients with TLS of ports with TLS
		"--cluster-enabled", "yes", "--cluster-port", bus, "--cluster-node-timeout", "1000",
	)})
	return node, bus, "127.0.0.1:" + tlsPort
}
