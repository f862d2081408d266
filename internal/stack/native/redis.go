package native

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"

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
	return d.ensureAll(ctx, topology.Sentinels...)
}

// prepareRedis makes a server the only one, or one of the pair. One that starts while the other is
// master starts as its replica, and so takes no writes that Sentinel would have it throw away
// seconds later.
func (d *Driver) prepareRedis(ctx context.Context, name, dir string) (localserver.Command, error) {
	run, _, err := localserver.RedisCommand(localserver.RedisConfig{Dir: dir, Port: d.Port(name), Log: d.LogPath(name), Settings: memorySettings})
	if err != nil || !d.IsReplicated() {
		return run, err
	}
	run.Args = append(run.Args, sentinel.ReplicationArgs()...)
	master := sentinel.LikelyMaster(ctx, d.Topology)
	if master == d.Addr(name) {
		return run, nil
	}
	host, port, err := net.SplitHostPort(master)
	run.Once = []string{"--replicaof", host, port}
	return run, err
}

// prepareSentinel writes a sentinel's configuration anew for each start: what the last one had
// learned and written into it may be outdated, and the others tell the rest.
func (d *Driver) prepareSentinel(ctx context.Context, name, dir string) (localserver.Command, error) {
	run, _, err := localserver.RedisCommand(localserver.RedisConfig{Dir: dir, Port: d.Port(name), Log: d.LogPath(name)})
	if err != nil {
		return run, err
	}
	host, port, err := net.SplitHostPort(sentinel.LikelyMaster(ctx, d.Topology))
	if err != nil {
		return run, err
	}
	path := filepath.Join(run.Dir, "sentinel.conf")
	text := fmt.Sprintf(sentinel.Config, d.Port(name), sentinel.MasterName, host+" "+port)
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		return run, fmt.Errorf("configure %s: %w", name, err)
	}
	if run.User != nil {
		err = os.Chown(path, int(run.User.Uid), int(run.User.Gid))
	}
	run.Args, run.Content = []string{path, "--sentinel"}, sentinel.Config
	return run, err
}
