package stack

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/oncepay/oncepay/internal/localserver"
	"github.com/oncepay/oncepay/internal/programs"
)

// nginxConf is the configuration of both drivers, below the repository's root. It is complete as it
// is, for docker compose.
const nginxConf = "deploy/nginx/nginx.conf"

// Both are in nginx's folder. requestLog has a line for each request that has ended: log_format
// `requests`. A direct stack, on which no campaign runs, does without its cost. failureLog has the
// lines that nginx writes to its standard error elsewhere: log_format `failures`.
const requestLog, failureLog = "requests.log", "failures.log"

// requests are the first five fields of each line: when nginx read the header, as "t=" and seconds
// since 1970 with milliseconds; the request's ID; 1 if nginx passed it on to a second replica; the
// method; and the rest.
func (s *Stack) requests() (all [][]string, err error) {
	text, err := os.ReadFile(filepath.Join(s.known(Nginx).Dir, requestLog))
	for line := range strings.Lines(string(text)) {
		if fields := strings.SplitN(line, " ", 5); len(fields) == 5 { // the last line may be half written
			all = append(all, fields)
		}
	}
	return all, err
}

// PassedOn counts the POSTs that nginx has passed on to a second replica since the stack came up.
// Native only.
func (s *Stack) PassedOn() (n int, err error) {
	requests, err := s.requests()
	for _, r := range requests {
		if r[2] == "1" && r[3] == "POST" {
			n++
		}
	}
	return n, err
}

// ReadByNginx is when nginx read the header of each request, by request ID: the time that it tells
// the replicas. It knows only requests that have ended. Native only.
func (s *Stack) ReadByNginx() (map[string]time.Time, error) {
	requests, err := s.requests()
	started := make(map[string]time.Time, len(requests))
	for _, r := range requests {
		milliseconds, err := strconv.ParseInt(strings.NewReplacer("t=", "", ".", "").Replace(r[0]), 10, 64)
		if err != nil {
			return nil, fmt.Errorf("nginx's log of requests: %w", err)
		}
		started[r[1]] = time.UnixMilli(milliseconds)
	}
	return started, err
}

// renderNginx puts a native stack's addresses into the configuration, and has it log requests.
func renderNginx(conf string, t *Topology) (string, error) {
	logs := "access_log " + failureLog + " "
	if !t.Direct {
		logs = "access_log " + requestLog + " requests;\n    " + logs
	}
	changes := []string{
		"access_log /dev/stderr ", logs,
		"listen 8080 ", "listen " + t.Addr(Nginx) + " ",
		"server 127.0.0.1:20081 ", "server " + t.Via(Nginx, API1) + " ",
		"server 127.0.0.1:20082 ", "server " + t.Via(Nginx, API2) + " ",
	}
	for change := range slices.Chunk(changes, 2) {
		if !strings.Contains(conf, change[0]) {
			return "", fmt.Errorf("%s must have %q", nginxConf, change[0])
		}
	}
	return strings.NewReplacer(changes...).Replace(conf), nil
}

// prepareNginx writes the configuration where the user that nginx runs as can read it. The errors
// of each try are logged, by which campaigns know what nginx calls dead.
func prepareNginx(root string, cfg localserver.Config, t *Topology) (localserver.Command, error) {
	run, err := localserver.Prepare(programs.Nginx, "nginx", cfg.Dir)
	if err != nil {
		return run, err
	}
	template, err := os.ReadFile(filepath.Join(root, nginxConf))
	if err != nil {
		return run, err
	}
	if run.Content, err = renderNginx(string(template), t); err != nil {
		return run, err
	}
	path := filepath.Join(run.Dir, "nginx.conf")
	run.Log = cfg.Log
	run.Args = []string{"-p", run.Dir, "-c", path, "-e", "stderr", "-g", "daemon off; error_log stderr warn;"}
	return run, os.WriteFile(path, []byte(run.Content), 0o644)
}
