package testenv

import (
	"strings"
	"testing"

	"github.com/oncepay/oncepay/internal/stack"
)

// clusterSlots are the first slots of the masters of a [ClusteredRedis], and the end.
var clusterSlots = []int{0, 5461, 10923, 16384}

// ClusteredRedis is a Redis Cluster of three masters that share the keys (Redis manual, "Scale with Redis Cluster").
type ClusteredRedis struct {
	// URL is redis+cluster://….
	URL string
	// Masters are in the order of their slots: 0 to 5460, 5461 to 10922, 10923 to 16383.
	Masters []*Server
}

// RedisCluster starts one for this test alone, which takes some seconds. It consists of processes in any case.
func RedisCluster(t testing.TB) *ClusteredRedis {
	t.Helper()
	r, addrs := &ClusteredRedis{}, []string(nil)
	for i := range len(clusterSlots) - 1 {
		bus, err := freePort()
		if err != nil {
			t.Fatalf("testenv: %v", err)
		}
		master := nativeRedis(t, stack.RedisConfig{Settings: []string{
			"--cluster-enabled", "yes", "--cluster-port", bus, "--cluster-node-timeout", "1000",
		}})
		master.Do("CLUSTER", "SET-CONFIG-EPOCH", i+1)
		master.Do("CLUSTER", "ADDSLOTSRANGE", clusterSlots[i], clusterSlots[i+1]-1)
		if i > 0 {
			r.Masters[0].Do("CLUSTER", "MEET", "127.0.0.1", master.port(), bus)
		}
		r.Masters, addrs = append(r.Masters, master), append(addrs, master.Addr)
	}
	for _, master := range r.Masters {
		master.awaitLines([]any{"CLUSTER", "INFO"}, "cluster_state:ok", "cluster_known_nodes:3", "cluster_size:3")
	}
	r.URL = "redis+cluster://" + strings.Join(addrs, ",")
	return r
}
