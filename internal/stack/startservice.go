package stack

import (
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"github.com/oncepay/oncepay/internal/localserver"
)

// webhookSecret signs pspsim's events. Like the demo API keys it is no secret: a stack is for
// development.
const webhookSecret = "whsec_Zm9yIGRldmVsb3BtZW50IG9ubHksIGtub3duIHRvIGFsbA=="

// dirOf is where a service has its files, a temporary folder perhaps.
func (d *nativeDriver) dirOf(name string) string {
	return cmp.Or(d.known(name).Dir, filepath.Join(d.Dir, name))
}

// prepare makes what a service needs to start, and returns the command that starts it.
func (d *nativeDriver) prepare(ctx context.Context, name string) (run localserver.Command, err error) {
	dir := d.dirOf(name)
	switch name {
	case Postgres, PostgresStandby:
		kind := localserver.Postgres
		if name != d.Primary() {
			kind = localserver.Standby(d.Via(name, d.Primary()))
		}
		return kind.Command(ctx, localserver.Config{Dir: dir, Port: d.Port(name), Log: d.logPath(name)})
	case Redis, RedisReplica:
		return d.prepareRedis(ctx, name, dir)
	case Sentinel1, Sentinel2, Sentinel3:
		return d.prepareSentinel(ctx, name, dir)
	case Nginx:
		return prepareNginx(d.root, dir, d.logPath(name), d.Topology)
	}
	// One of our own programs, in a clean environment: the settings are what is written here.
	run = localserver.Command{Dir: d.Dir, Log: d.logPath(name)}
	switch name {
	case Proxy:
		run.Path, run.Args = d.Program("stack"), []string{"proxy", d.Addr(name), strconv.Itoa(d.Offset)}
		for _, port := range d.held { // it outlives `up`, so the others can restart on their ports
			run.Held = append(run.Held, port.Socket)
		}
	case Mail:
		run.Path, run.Args = d.Program("stack"), []string{"mailsink", d.Addr(name), d.Ops(name), filepath.Join(d.Dir, "mails.jsonl")}
	case PSP:
		run.Path, run.Env = d.Program("pspsim"), []string{
			"PSPSIM_ADDR=" + d.Addr(name),
			"PSPSIM_DATA=" + filepath.Join(d.Dir, "pspsim.journal"),
			"PSPSIM_WEBHOOK_URL=" + d.URL() + "/v1/webhooks/psp", // the public door, as for a provider out in the world
			"PSPSIM_WEBHOOK_SECRET=" + webhookSecret,
		}
	case Console: // in the repository and with our PATH: it starts services, as `stack start` does
		run.Path, run.Args, run.Dir = d.Program("stack"), []string{"console", "--dir", d.Dir}, d.root
		run.Env = []string{"PATH=" + os.Getenv("PATH")}
	default:
		run.Path, run.Args, run.Env = d.oncepayOf(name), []string{"serve"}, d.replicaEnv(name)
	}
	program, err := os.ReadFile(run.Path) // one build of it is told from another
	run.Content = fmt.Sprintf("%x", sha256.Sum256(program))
	return run, err
}

// replicaEnv reaches everything through the proxy.
func (d *nativeDriver) replicaEnv(name string) []string {
	env := []string{
		"ENVIRONMENT=development",
		"REPLICA=" + name,
		"HTTP_ADDR=" + d.Addr(name),
		"OPS_ADDR=" + d.Ops(name),
		"DATABASE_URL=" + d.databaseURL(name),
		"REDIS_URL=" + d.redisURL(name),
		"PSP_URL=http://" + d.Via(name, PSP),
		"PSP_WEBHOOK_SECRET=" + webhookSecret,
		"MAIL_URL=smtp://" + d.Via(name, Mail),
		"MAIL_FROM=Demo Shop <shop@example.com>",
		"IDEMPOTENCY_RECORD_SECRETS=for development only, known to everybody",
	}
	if d.Console { // it draws what the replicas tell, as soon as they know it
		env = append(env, "OTEL_EXPORTER_OTLP_ENDPOINT=http://"+d.Addr(Console), "OTEL_BSP_SCHEDULE_DELAY=100")
	}
	return append(env, d.state.Env...)
}
