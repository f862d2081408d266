package testenv

import (
	"fmt"
	"strings"
	"testing"

	"github.com/oncepay/oncepay/internal/localserver"
)

// ClusteredRedis is a Redis Cluster whose masters share the keys (Redis manual, "Scale with Redis
// Cluster").
type ClusteredRedis struct {
	// URL is redis+cluster://…, TLSURL is rediss+cluster://…?ca_file=… for the same.
	URL, TLSURL string
	// Masters are in the order of their slots.
	Masters []*Server
}

// RedisCluster starts one for this test alone, which takes some seconds: three processes in any
// case, with the slots 0 to 5460, 5461 to 10922, 10923 to 16383.
func RedisCluster(t testing.TB) *ClusteredRedis {
	t.Helper()
	return newCluster(t, 0, 5461, 10923, 16384)
}

// RedisClusterOfOne starts a cluster whose only node has all keys, for this test alone. Its URL is
// redis+cluster://….
func RedisClusterOfOne(t testing.TB) *Server {
	t.Helper()
	r := newCluster(t, 0, 16384)
	r.Masters[0].URL = r.URL
	return r.Masters[0]
}

// newCluster starts a master for the slots from each number to the next.
func newCluster(t testing.TB, slots ...int) *ClusteredRedis {
	t.Helper()
	r, certificate := &ClusteredRedis{}, newCertificate(t)
	var addrs, tlsAddrs []string
	for i, first := range slots[:len(slots)-1] {
		tlsPort, bus := pickPort(t), pickPort(t)
		master := newServer(t, localserver.Redis, localserver.Config{Settings: append(tlsSettings(tlsPort, certificate),
			"--tls-cluster", "yes", // so that it tells clients with TLS of ports with TLS
			"--cluster-enabled", "yes", "--cluster-port", bus, "--cluster-node-timeout", "1000",
		)})
		master.Do("CLUSTER", "SET-CONFIG-EPOCH", i+1)
		master.Do("CLUSTER", "ADDSLOTSRANGE", first, slots[i+1]-1)
		if i > 0 {
			r.Masters[0].Do("CLUSTER", "MEET", "127.0.0.1", master.port(), bus)
		}
		r.Masters = append(r.Masters, master)
		addrs, tlsAddrs = append(addrs, master.Addr), append(tlsAddrs, "127.0.0.1:"+tlsPort)
	}
	all := len(r.Masters)
	for _, master := range r.Masters {
		master.awaitLines([]any{"CLUSTER", "INFO"}, "cluster_state:ok",
			fmt.Sprint("cluster_known_nodes:", all), fmt.Sprint("cluster_size:", all))
	}
	r.URL = "redis+cluster://" + strings.Join(addrs, ",")
	r.TLSURL = "rediss+cluster://" + strings.Join(tlsAddrs, ",") + "?ca_file=" + certificate
	return r
}
