package stack

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/oncepay/oncepay/internal/localserver"
)

// installTimeout bounds the package manager: it downloads some 30 MB, on a slow line in minutes.
const installTimeout = 10 * time.Minute

// policyFile is what Debian's maintainer scripts ask whether they may start a service
// (invoke-rc.d(8)).
const policyFile = "/usr/sbin/policy-rc.d"

// packageManager knows the names that our three servers have in a distribution.
type packageManager struct {
	program  string
	refresh  []string // brings the package lists up to date; nil: not needed
	install  []string
	packages map[string]string
	asRoot   bool
}

var packageManagers = []packageManager{
	{
		"apt-get",
		[]string{"apt-get", "update", "-q"},
		[]string{"apt-get", "install", "-y", "-q", "--no-install-recommends"},
		map[string]string{Postgres: "postgresql", Redis: "redis-server", Nginx: "nginx"}, true,
	},
	{
		"dnf", nil,
		[]string{"dnf", "install", "-y", "-q"},
		map[string]string{Postgres: "postgresql-server", Redis: "redis", Nginx: "nginx"}, true,
	},
	{
		"apk", nil,
		[]string{"apk", "add", "--no-cache"},
		map[string]string{Postgres: "postgresql", Redis: "redis", Nginx: "nginx"}, true,
	},
	{
		"brew", nil,
		[]string{"brew", "install", "--quiet"},
		map[string]string{Postgres: "postgresql@17", Redis: "redis", Nginx: "nginx"}, false,
	},
}

// missingPrograms returns the services whose program this machine lacks, and why.
func missingPrograms() (services []string, why error) {
	_, errPostgres := localserver.FindPostgres()
	_, errRedis := localserver.FindRedis()
	_, errNginx := localserver.FindNginx()
	for _, found := range []struct {
		service string
		err     error
	}{{Postgres, errPostgres}, {Redis, errRedis}, {Nginx, errNginx}} {
		if found.err != nil {
			services = append(services, found.service)
		}
	}
	return services, errors.Join(errPostgres, errRedis, errNginx)
}

// installMissing installs what is missing, after saying so, and leaves no service running that the
// packages bring along.
func (n *native) installMissing(ctx context.Context) error {
	services, why := missingPrograms()
	if len(services) == 0 {
		return nil
	}
	manager, err := findPackageManager()
	if err != nil {
		return errors.Join(why, err, errNothingStarted)
	}
	command := manager.command(services)
	line := strings.Join(command, " ")
	if n.NoInstall {
		return fmt.Errorf("%w\ninstall with: %s (%w)", why, line, errNothingStarted)
	}
	n.printf("%v\ninstalling with: %s\n", why, line)
	t := n.step("install", manager.program)
	if err := manager.run(ctx, command, n.logPath("install")); err != nil {
		return t.failed(fmt.Errorf("%s: %w", line, err))
	}
	if _, why := missingPrograms(); why != nil {
		return t.failed(fmt.Errorf("this system's packages are too old: %w", why))
	}
	t.done(strings.Join(services, ", "))
	return nil
}

func findPackageManager() (packageManager, error) {
	for _, m := range packageManagers {
		if _, err := exec.LookPath(m.program); err == nil {
			return m, nil
		}
	}
	return packageManager{}, errors.New("and there is no apt-get, dnf, apk or brew to install them with")
}

// command is what installs the programs of these services; with sudo unless we are root.
func (m packageManager) command(services []string) []string {
	command := m.sudo(m.install)
	for _, name := range services {
		command = append(command, m.packages[name])
	}
	return command
}

func (m packageManager) sudo(command []string) []string {
	if m.asRoot && os.Geteuid() != 0 {
		return append([]string{"sudo", "-n"}, command...) // -n: we have no terminal to ask for a password on
	}
	return append([]string(nil), command...)
}

func (m packageManager) run(ctx context.Context, command []string, log string) error {
	ctx, cancel := context.WithTimeout(ctx, installTimeout)
	defer cancel()
	undo, err := m.forbidServices()
	if err != nil {
		return err
	}
	defer undo()
	before := enabledUnits(ctx)
	if m.refresh != nil {
		if err := runLogged(ctx, log, m.sudo(m.refresh)); err != nil {
			return err
		}
	}
	if err := runLogged(ctx, log, command); err != nil {
		return err
	}
	return disableNewUnits(ctx, log, m, before)
}

// forbidServices makes Debian's packages install without starting anything, unless the machine has
// such a rule already.
func (m packageManager) forbidServices() (undo func(), err error) {
	if m.program != "apt-get" || isFile(policyFile) || os.Geteuid() != 0 {
		return func() {}, nil
	}
	if err := os.WriteFile(policyFile, []byte("#!/bin/sh\nexit 101\n"), 0o755); err != nil {
		return nil, fmt.Errorf("forbid packages to start services: %w", err)
	}
	return func() { _ = os.Remove(policyFile) }, nil
}

// unitPatterns are the systemd units that the packages bring along.
var unitPatterns = []string{"postgresql*.service", "redis*.service", "nginx.service"}

// enabledUnits lists the ones that were set up to start at boot, or nil without systemd.
func enabledUnits(ctx context.Context) map[string]bool {
	if _, err := os.Stat("/run/systemd/system"); err != nil {
		return nil
	}
	args := append([]string{"list-unit-files", "--no-legend", "--state=enabled"}, unitPatterns...)
	out, _ := exec.CommandContext(ctx, "systemctl", args...).Output()
	units := map[string]bool{}
	for line := range strings.Lines(string(out)) {
		if fields := strings.Fields(line); len(fields) > 0 {
			units[fields[0]] = true
		}
	}
	return units
}

// disableNewUnits stops what was not enabled before, now and at the next boot.
func disableNewUnits(ctx context.Context, log string, m packageManager, before map[string]bool) error {
	for unit := range enabledUnits(ctx) {
		if before[unit] {
			continue
		}
		if err := runLogged(ctx, log, m.sudo([]string{"systemctl", "disable", "--now", unit})); err != nil {
			return err
		}
	}
	return nil
}

// runLogged runs a command with its output appended to a log file, and shows the end of that when
// it fails.
func runLogged(ctx context.Context, log string, command []string) error {
	if err := os.MkdirAll(filepath.Dir(log), 0o755); err != nil {
		return err
	}
	out, err := os.OpenFile(log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer func() { _ = out.Close() }()
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive", "HOMEBREW_NO_AUTO_UPDATE=1")
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Run(); err != nil {
		return localserver.WithLog(errors.Join(err, ctx.Err()), log)
	}
	return nil
}
