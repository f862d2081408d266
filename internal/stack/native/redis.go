package native

import (
	"context"
	"fmt"
	"net"

	"github.com/oncepay/oncepay/internal/localserver"
	"github.com/oncepay/oncepay/internal/stack/sentinel"
	"github.com/oncepay/oncepay/internal/stack/topology"
)

// memorySettings bound what Redis holds. It then refuses writes and forgets nothing: what moves
// money fails closed. docker-compose.yml has the same.
var memorySettings = []string{"--maxmemory", "2gb", "--maxmemory-policy", "noeviction"}

// redisURL is where a replica of the service finds Redis.
func (d *Driver) redisURL(replica string) string {
	if d.IsReplicated() {
		return sentinel.URL(d.Topology)
	}
	return localserver.RedisURL(d.Via(replica, topology.Redis))
}

// ensureRedis brings up one server, or the pair and then the sentinels, which would take a pair
// that is about to start for dead.
func (d *Driver) ensureRedis(ctx context.Context) error {
	if err := d.ensure(ctx, topology.Redis); err != nil || !d.IsReplicated() {
		return err
	}
	if err := d.ensure(ctx, topology.RedisReplica); err != nil {
		return err
	}
	return d.ensure(ctx, topology.Sentinels...)
}

// prepareRedis makes a server the only one, or one of the pair. One that starts while the other is
// master starts as its replica, and so takes no writes that Sentinel would have it throw away
// seconds later.
func (d *Driver) prepareRedis(ctx context.Context, name, dir string) (localserver.Command, error) {
	cfg := localserver.Config{Dir: dir, Port: d.Port(name), Log: d.LogPath(name), Settings: memorySettings}
	if !d.IsReplicated() {
		return localserver.Redis.Command(ctx, cfg)
	}
	cfg.Settings = append(sentinel.ReplicationArgs(), memorySettings...)
	run, err := localserver.Redis.Command(ctx, cfg)
	if master := sentinel.LikelyMaster(ctx, d.Topology); master != d.Addr(name) {
		host, port, _ := net.SplitHostPort(master)
		run.Once = []string{"--replicaof", host, port}
	}
	return run, err
}

// prepareSentinel writes a sentinel's configuration anew for each start: what the last one had
// learned and written into it may be outdated, and the others tell the rest.
func (d *Driver) prepareSentinel(ctx context.Context, name, dir string) (localserver.Command, error) {
	host, port, err := net.SplitHostPort(sentinel.LikelyMaster(ctx, d.Topology))
	if err != nil {
		return localserver.Command{}, err
	}
	run, err := localserver.Redis.Command(ctx, localserver.Config{
		Dir: dir, Port: d.Port(name), Log: d.LogPath(name), Settings: []string{"--sentinel"},
		ConfigFile: fmt.Sprintf(sentinel.Config, d.Port(name), sentinel.MasterName, host+" "+port),
	})
	run.Content = sentinel.Config
	return run, err
}
