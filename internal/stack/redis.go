package stack

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strings"

	"github.com/oncepay/oncepay/internal/localserver"
)

// memorySettings bound what Redis holds. It then refuses writes and forgets nothing: what moves
// money fails closed. docker-compose.yml has the same.
var memorySettings = []string{"--maxmemory", "2gb", "--maxmemory-policy", "noeviction"}

// redisURL is where a replica of the service finds Redis.
func (d *nativeDriver) redisURL(replica string) string {
	if !d.IsReplicated() {
		return localserver.RedisURL(d.Via(replica, Redis))
	}
	addrs := make([]string, len(sentinels))
	for i, name := range sentinels {
		addrs[i] = d.Addr(name)
	}
	return "redis+sentinel://" + strings.Join(addrs, ",") + "/" + masterName
}

// prepareRedis makes a server the only one, or one of the pair. One that starts while the other is
// master starts as its replica, and so takes no writes that Sentinel would have it throw away
// seconds later.
func (d *nativeDriver) prepareRedis(ctx context.Context, name, dir string) (localserver.Command, error) {
	cfg := localserver.Config{Dir: dir, Port: d.Port(name), Log: d.logPath(name), Settings: memorySettings}
	if !d.IsReplicated() {
		return localserver.Redis.Command(ctx, cfg)
	}
	cfg.Settings = slices.Concat(replicationArgs, memorySettings)
	run, err := localserver.Redis.Command(ctx, cfg)
	if master := d.likelyMaster(ctx); master != d.Addr(name) {
		host, port, _ := net.SplitHostPort(master)
		run.Once = []string{"--replicaof", host, port}
	}
	return run, err
}

// prepareSentinel writes a sentinel's configuration anew for each start: what the last one had
// learned and written into it may be outdated, and the others tell the rest.
func (d *nativeDriver) prepareSentinel(ctx context.Context, name, dir string) (localserver.Command, error) {
	host, port, err := net.SplitHostPort(d.likelyMaster(ctx))
	if err != nil {
		return localserver.Command{}, err
	}
	run, err := localserver.Redis.Command(ctx, localserver.Config{
		Dir: dir, Port: d.Port(name), Log: d.logPath(name), Settings: []string{"--sentinel"},
		ConfigFile: fmt.Sprintf(sentinelConfig, d.Port(name), masterName, host+" "+port),
	})
	run.Content = sentinelConfig
	return run, err
}
