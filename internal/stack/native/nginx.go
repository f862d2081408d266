package native

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/oncepay/oncepay/internal/localserver"
	"github.com/oncepay/oncepay/internal/programs"
	"github.com/oncepay/oncepay/internal/stack/topology"
)

// nginxConf is the configuration of both drivers, below the repository's root. It is complete as it
// is, for docker compose.
const nginxConf = "deploy/nginx/nginx.conf"

// passedOnLog, in nginx's folder, has a line for each request that was passed on to a second
// replica.
const passedOnLog = "passed_on.log"

// PassedOn counts the POSTs that nginx has passed on to a second replica since the stack came up.
func (d *Driver) PassedOn() (int, error) {
	text, err := os.ReadFile(filepath.Join(d.State.Service(topology.Nginx).Dir, passedOnLog))
	if err != nil {
		return 0, fmt.Errorf("count what nginx passed on: %w", err)
	}
	n := 0
	for line := range bytes.Lines(text) {
		if bytes.HasPrefix(line, []byte("POST ")) {
			n++
		}
	}
	return n, nil
}

// renderNginx puts a native stack's addresses into the configuration, and has it note what is
// passed on.
func renderNginx(conf string, t *topology.Topology) (string, error) {
	for _, change := range []struct {
		old, new string
		times    int
	}{
		{"access_log off;", "access_log " + passedOnLog + " passed_on if=$oncepay_passed_on;", 1},
		{"listen 8080 ", "listen " + t.Addr(topology.Nginx) + " ", 1},
		{"server 127.0.0.1:20081 ", "server " + t.Via(topology.Nginx, topology.API1) + " ", 4},
		{"server 127.0.0.1:20082 ", "server " + t.Via(topology.Nginx, topology.API2) + " ", 4},
	} {
		if n := strings.Count(conf, change.old); n != change.times {
			return "", fmt.Errorf("%s must have %q %d times, not %d", nginxConf, change.old, change.times, n)
		}
		conf = strings.ReplaceAll(conf, change.old, change.new)
	}
	return conf, nil
}

// prepareNginx writes the configuration where the user that nginx runs as can read it.
func prepareNginx(root, dir, log string, t *topology.Topology) (run localserver.Command, err error) {
	program, err := programs.Nginx.Find()
	if err != nil {
		return run, err
	}
	user, err := localserver.Unprivileged()
	if err != nil {
		return run, err
	}
	if dir, _, err = localserver.ServerDir(dir, "nginx", user); err != nil {
		return run, err
	}
	template, err := os.ReadFile(filepath.Join(root, nginxConf))
	if err != nil {
		return run, err
	}
	conf, err := renderNginx(string(template), t)
	if err != nil {
		return run, err
	}
	path := filepath.Join(dir, "nginx.conf")
	if err := os.WriteFile(path, []byte(conf), 0o644); err != nil {
		return run, err
	}
	return localserver.Command{
		Path: program, Args: []string{"-p", dir, "-c", path, "-e", "stderr", "-g", "daemon off;"},
		Env: []string{localserver.ServerPath}, Dir: dir, Log: log, User: user, Content: conf,
	}, nil
}
