package redisstore_test

import (
	"context"
	"net"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/idempotency"
	"github.com/oncepay/oncepay/idempotency/redisstore"
	"github.com/oncepay/oncepay/internal/testenv"
)

// slotOf returns the slot of a record, and which of the cluster's masters has it.
func slotOf(t *testing.T, client redis.UniversalClient, r idempotency.Record) (slot int64, master int) {
	t.Helper()
	slot = client.ClusterKeySlot(t.Context(), "idempotency:"+r.Scope+":"+r.Key).Val()
	return slot, slices.IndexFunc([]int64{5460, 10922, 16383}, func(last int64) bool { return slot <= last })
}

// throughProxies makes a client of a cluster that goes through a proxy to each master, in their
// order.
func throughProxies(t *testing.T, cluster *testenv.ClusteredRedis) (client redis.UniversalClient, ways []*testenv.Proxy) {
	t.Helper()
	detours := map[string]string{}
	for _, master := range cluster.Masters {
		way := testenv.NewProxy(t, master.Addr)
		ways, detours[master.Addr] = append(ways, way), way.Addr
	}
	o, err := redisstore.Options(cluster.URL)
	require.NoError(t, err)
	o.DialTimeout, o.PoolTimeout = patience, patience // only lost replies count
	o.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, detours[addr])
	}
	client = redisstore.NewClient(o)
	t.Cleanup(func() { require.NoError(t, client.Close()) })
	return client, ways
}

// TestCluster_GetsEachCommandOnce loses all replies to a step. The command must arrive twice: from
// the store, which knows its owner, and not also from go-redis, which doesn't.
func TestCluster_GetsEachCommandOnce(t *testing.T) {
	t.Parallel()
	cluster := testenv.RedisCluster(t)
	client, ways := throughProxies(t, cluster)
	direct := openPatient(t, cluster.URL)
	arriving := map[string]string{"acquire": "set", "extend": "evalsha", "complete": "evalsha", "release": "evalsha"}
	for name, step := range steps { // one after the other, as they are counted
		for fault, inject := range map[string]testenv.Fault{"lost": {Lose: true}, "cut": {Cut: true}} {
			record := pending(name + " " + fault)
			_, master := slotOf(t, client, record)
			require.NoError(t, step.prepared(t, redisstore.New(direct), record.Key)) // the server knows the script from here on
			require.NoError(t, direct.Del(t.Context(), "idempotency:acct_1:"+record.Key).Err())
			if step.acquired {
				_, err := redisstore.New(direct).Acquire(t.Context(), record, time.Minute)
				require.NoError(t, err)
			}
			cluster.Masters[master].Do("CONFIG", "RESETSTAT")
			for range 10 {
				ways[master].FailNext(record.Key, inject)
			}
			err := step.take(t.Context(), redisstore.New(client), record)
			require.ErrorIs(t, err, idempotency.ErrUnavailable, record.Key)
			stats := openPatient(t, cluster.Masters[master].URL).Info(t.Context(), "commandstats").Val()
			require.Contains(t, stats, "cmdstat_"+arriving[name]+":calls=2,", record.Key)
		}
	}
}

// TestCluster_FollowsAMovingKey takes the steps while the key's slot migrates to another master,
// and after that.
func TestCluster_FollowsAMovingKey(t *testing.T) {
	t.Parallel()
	cluster := testenv.RedisCluster(t)
	client := openPatient(t, cluster.URL)
	store, record := redisstore.New(client), pending("key")
	slot, master := slotOf(t, client, record)
	require.NoError(t, store.Release(t.Context(), record), "it knows the old way")

	from, to := cluster.Masters[master], cluster.Masters[(master+1)%3]
	fromID, toID := idOf(t, from), idOf(t, to)
	to.Do("CLUSTER", "SETSLOT", slot, "IMPORTING", fromID)
	from.Do("CLUSTER", "SETSLOT", slot, "MIGRATING", toID)
	existing, err := store.Acquire(t.Context(), record, time.Minute)
	require.NoError(t, err)
	require.Nil(t, existing)
	require.Equal(t, int64(1), openPatient(t, to.URL).DBSize(t.Context()).Val(), "it was redirected by ASK")
	require.NoError(t, store.Extend(t.Context(), record, time.Minute))

	to.Do("CLUSTER", "SETSLOT", slot, "NODE", toID)
	from.Do("CLUSTER", "SETSLOT", slot, "NODE", toID)
	require.NoError(t, store.Complete(t.Context(), done(record), time.Minute), "it was redirected by MOVED")
	existing, err = store.Acquire(t.Context(), pending("key"), time.Minute)
	require.NoError(t, err)
	require.Equal(t, idempotency.StatusCompleted, existing.Status)
}

func idOf(t *testing.T, master *testenv.Server) string {
	t.Helper()
	id, err := openPatient(t, master.URL).Do(t.Context(), "CLUSTER", "MYID").Text()
	require.NoError(t, err)
	return id
}

// TestCluster_FindsTheNewMaster has a master die after another took its slot. It cannot redirect
// anybody.
func TestCluster_FindsTheNewMaster(t *testing.T) {
	t.Parallel()
	cluster := testenv.RedisCluster(t)
	client := open(t, cluster.URL)
	slot, master := slotOf(t, client, pending("served again"))
	require.NoError(t, redisstore.New(client).Release(t.Context(), pending("served again")), "it knows the old way")

	successor := cluster.Masters[(master+1)%3]
	id := idOf(t, successor)
	for _, server := range cluster.Masters {
		server.Do("CONFIG", "SET", "cluster-require-full-coverage", "no")
	}
	successor.Do("CLUSTER", "SETSLOT", slot, "NODE", id)
	successor.Do("CLUSTER", "BUMPEPOCH")
	cluster.Masters[(master+2)%3].Do("CLUSTER", "SETSLOT", slot, "NODE", id)
	cluster.Masters[master].Stop()
	requireServed(t, client)
}
