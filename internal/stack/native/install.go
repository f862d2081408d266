package native

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/oncepay/oncepay/internal/localserver"
	"github.com/oncepay/oncepay/internal/stack/deployment"
	"github.com/oncepay/oncepay/internal/stack/topology"
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
		map[string]string{topology.Postgres: "postgresql", topology.Redis: "redis-server", topology.Nginx: "nginx"}, true,
	},
	{
		"dnf", nil,
		[]string{"dnf", "install", "-y", "-q"},
		map[string]string{topology.Postgres: "postgresql-server", topology.Redis: "redis", topology.Nginx: "nginx"}, true,
	},
	{
		"apk", nil,
		[]string{"apk", "add", "--no-cache"},
		map[string]string{topology.Postgres: "postgresql", topology.Redis: "redis", topology.Nginx: "nginx"}, true,
	},
	{
		"brew", nil,
		[]string{"brew", "install", "--quiet"},
		map[string]string{topology.Postgres: "postgresql@17", topology.Redis: "redis", topology.Nginx: "nginx"}, false,
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
	}{{topology.Postgres, errPostgres}, {topology.Redis, errRedis}, {topology.Nginx, errNginx}} {
		if found.err != nil {
			services = append(services, found.service)
		}
	}
	return services, errors.Join(errPostgres, errRedis, errNginx)
}

// installMissing installs what is missing, after saying so, and leaves no service running that the
// packages bring along.
func (d *Driver) installMissing(ctx context.Context) error {
	services, why := missingPrograms()
	if len(services) == 0 {
		return nil
	}
	manager, err := findPackageManager()
	if err != nil {
		return errors.Join(why, err, deployment.ErrNothingStarted)
	}
	command := manager.command(services)
	line := strings.Join(command, " ")
	if d.NoInstall {
		return fmt.Errorf("%w\ninstall with: %s (%w)", why, line, deployment.ErrNothingStarted)
	}
	d.Printf("%v\ninstalling with: %s\n", why, line)
	t := d.Step("install", manager.program)
	if err := manager.run(ctx, command, d.LogPath("install")); err != nil {
		return t.Failed(fmt.Errorf("%s: %w", line, err))
	}
	if _, why := missingPrograms(); why != nil {
		return t.Failed(fmt.Errorf("this system's packages are too old: %w", why))
	}
	t.Done(strings.Join(services, ", "))
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
		if err := m.runLogged(ctx, log, m.sudo(m.refresh)); err != nil {
			return err
		}
	}
	if err := m.runLogged(ctx, log, command); err != nil {
		return err
	}
	return disableNewUnits(ctx, log, m, before)
}

// runLogged asks the package managers to ask nothing and to refresh nothing.
func (m packageManager) runLogged(ctx context.Context, log string, command []string) error {
	return localserver.RunLogged(ctx, log, command, "DEBIAN_FRONTEND=noninteractive", "HOMEBREW_NO_AUTO_UPDATE=1")
}

// forbidServices makes Debian's packages install without starting anything, unless the machine has
// such a rule already.
func (m packageManager) forbidServices() (undo func(), err error) {
	if m.program != "apt-get" || localserver.IsFile(policyFile) || os.Geteuid() != 0 {
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
		if err := m.runLogged(ctx, log, m.sudo([]string{"systemctl", "disable", "--now", unit})); err != nil {
			return err
		}
	}
	return nil
}
