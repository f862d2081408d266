package native

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"
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
func (d *Driver) prepare(ctx context.Context, name string) (localserver.Command, error) {
	dir := cmp.Or(d.State.Service(name).Dir, filepath.Join(d.Dir, name)) // a temporary one, perhaps
	switch name {
	case d.Primary():
		return d.preparePrimary(ctx, dir)
	case d.StandbyServer():
		return d.prepareStandby(ctx, dir)
	case topology.Redis, topology.RedisReplica:
		return d.prepareRedis(ctx, name, dir)
	case topology.Sentinel1, topology.Sentinel2, topology.Sentinel3:
		return d.prepareSentinel(ctx, name, dir)
	case topology.Nginx:
		return prepareNginx(d.Root, dir, d.LogPath(name), d.Topology)
	case topology.Proxy:
		return d.prepareProxy()
	case topology.Mail:
		return d.ours(topology.Mail, d.Program("stack"), nil, "mailsink", "--smtp", d.Addr(topology.Mail), "--http", d.Ops(topology.Mail),
			"--mails", filepath.Join(d.Dir, deployment.MailData))
	case topology.Console:
		return d.prepareConsole()
	case topology.PSP:
		return d.prepareProvider()
	default:
		return d.prepareReplica(name)
	}
}

// prepareProxy has the proxy hold all ports: it outlives `up`, so the others can restart on theirs.
func (d *Driver) prepareProxy() (localserver.Command, error) {
	run, err := d.ours(topology.Proxy, d.Program("stack"), nil, "proxy", "--control", d.Addr(topology.Proxy), "--port-offset", strconv.Itoa(d.Offset))
	for _, port := range d.held {
		run.Held = append(run.Held, port.Socket)
	}
	return run, err
}

// prepareProvider has pspsim send its events through the public door, as a provider out in the
// world would.
func (d *Driver) prepareProvider() (localserver.Command, error) {
	return d.ours(topology.PSP, d.Program("pspsim"), []string{
		"PSPSIM_ADDR=" + d.Addr(topology.PSP),
		"PSPSIM_DATA=" + filepath.Join(d.Dir, deployment.ProviderData),
		"PSPSIM_WEBHOOK_URL=" + d.URL() + "/v1/webhooks/psp",
		"PSPSIM_WEBHOOK_SECRET=" + webhookSecret,
	})
}

// prepareConsole has the console run in the repository and with our PATH: it starts services, as
// `stack start` does.
func (d *Driver) prepareConsole() (localserver.Command, error) {
	env := append([]string{"ENVIRONMENT=development", "PATH=" + os.Getenv("PATH")}, d.State.Data.Env...)
	run, err := d.ours(topology.Console, d.Program("console"), env, "--dir", d.Dir)
	run.Dir = d.Root
	return run, err
}

func (d *Driver) prepareReplica(name string) (localserver.Command, error) {
	return d.ours(name, d.OncepayOf(name), d.replicaEnv(name), "serve")
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

// ours describes a start of one of our own programs, in a clean environment: the settings are what
// is written here.
func (d *Driver) ours(name, path string, env []string, args ...string) (localserver.Command, error) {
	digest, err := fileDigest(path)
	if err != nil {
		return localserver.Command{}, err
	}
	return localserver.Command{Path: path, Args: args, Env: env, Dir: d.Dir, Log: d.LogPath(name), Content: digest}, nil
}

// fileDigest tells one build of a program from another.
func fileDigest(path string) (string, error) {
	file, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer func() { _ = file.Close() }()
	hash := sha256.New()
	if _, err := io.Copy(hash, file); err != nil {
		return "", err
	}
	return hex.EncodeToString(hash.Sum(nil)), nil
}
