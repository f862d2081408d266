package native

import (
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"github.com/oncepay/oncepay/internal/localserver"
	"github.com/oncepay/oncepay/internal/stack/deployment"
	"github.com/oncepay/oncepay/internal/stack/topology"
)

// webhookSecret signs pspsim's events. Like the demo API keys it is no secret: a stack is for
// development.
const webhookSecret = "whsec_Zm9yIGRldmVsb3BtZW50IG9ubHksIGtub3duIHRvIGFsbA=="

// prepare makes what a service needs to start, and returns the command that starts it.
func (d *Driver) prepare(ctx context.Context, name string) (run localserver.Command, err error) {
	dir := cmp.Or(d.State.Service(name).Dir, filepath.Join(d.Dir, name)) // a temporary one, perhaps
	switch name {
	case topology.Postgres, topology.PostgresStandby:
		return d.postgresKind(name).Command(ctx, localserver.Config{Dir: dir, Port: d.Port(name), Log: d.LogPath(name)})
	case topology.Redis, topology.RedisReplica:
		return d.prepareRedis(ctx, name, dir)
	case topology.Sentinel1, topology.Sentinel2, topology.Sentinel3:
		return d.prepareSentinel(ctx, name, dir)
	case topology.Nginx:
		return prepareNginx(d.Root, dir, d.LogPath(name), d.Topology)
	}
	// One of our own programs, in a clean environment: the settings are what is written here.
	run = localserver.Command{Dir: d.Dir, Log: d.LogPath(name)}
	switch name {
	case topology.Proxy:
		run.Path, run.Args = d.Program("stack"), []string{"proxy", "--control", d.Addr(name), "--port-offset", strconv.Itoa(d.Offset)}
		for _, port := range d.held { // it outlives `up`, so the others can restart on their ports
			run.Held = append(run.Held, port.Socket)
		}
	case topology.Mail:
		run.Path = d.Program("stack")
		run.Args = []string{"mailsink", "--smtp", d.Addr(name), "--http", d.Ops(name), "--mails", filepath.Join(d.Dir, deployment.MailData)}
	case topology.PSP:
		run.Path, run.Env = d.Program("pspsim"), []string{
			"PSPSIM_ADDR=" + d.Addr(name),
			"PSPSIM_DATA=" + filepath.Join(d.Dir, deployment.ProviderData),
			"PSPSIM_WEBHOOK_URL=" + d.URL() + "/v1/webhooks/psp", // the public door, as for a provider out in the world
			"PSPSIM_WEBHOOK_SECRET=" + webhookSecret,
		}
	case topology.Console: // in the repository and with our PATH: it starts services, as `stack start` does
		run.Path, run.Args, run.Dir = d.Program("console"), []string{"--dir", d.Dir}, d.Root
		run.Env = append([]string{"ENVIRONMENT=development", "PATH=" + os.Getenv("PATH")}, d.State.Data.Env...)
	default:
		run.Path, run.Args, run.Env = d.OncepayOf(name), []string{"serve"}, d.replicaEnv(name)
	}
	run.Content, err = fileDigest(run.Path)
	return run, err
}

// replicaEnv reaches everything through the proxy.
func (d *Driver) replicaEnv(name string) []string {
	env := []string{
		"ENVIRONMENT=development",
		"REPLICA=" + name,
		"HTTP_ADDR=" + d.Addr(name),
		"OPS_ADDR=" + d.Ops(name),
		"DATABASE_URL=" + d.databaseURL(name),
		"REDIS_URL=" + d.redisURL(name),
		"PSP_URL=http://" + d.Via(name, topology.PSP),
		"PSP_WEBHOOK_SECRET=" + webhookSecret,
		"MAIL_URL=smtp://" + d.Via(name, topology.Mail),
		"MAIL_FROM=Demo Shop <shop@example.com>",
		"IDEMPOTENCY_RECORD_SECRETS=for development only, known to everybody",
	}
	if d.Console { // it draws what the replicas tell, as soon as they know it
		env = append(env, "OTEL_EXPORTER_OTLP_ENDPOINT=http://"+d.Addr(topology.Console), "OTEL_BSP_SCHEDULE_DELAY=100")
	}
	return append(env, d.State.Data.Env...)
}

// fileDigest tells one build of a program from another.
func fileDigest(path string) (string, error) {
	content, err := os.ReadFile(path)
	return fmt.Sprintf("%x", sha256.Sum256(content)), err
}
