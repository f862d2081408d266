package programs

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
)

// forbidServices makes Debian's packages install without starting anything, unless the machine has
// such a rule already.
func (h host) forbidServices(ctx context.Context, m manager) (undo func(), err error) {
	if _, err := os.Stat(h.policy); err == nil || m.program != "apt-get" {
		return func() {}, nil
	}
	shell := func(ctx context.Context, script string) error {
		if out, err := h.administrator(ctx, m, "sh", "-c", script).CombinedOutput(); err != nil {
			return fmt.Errorf("forbid packages to start services: %w: %s", err, out)
		}
		return nil
	}
	return func() { _ = shell(context.WithoutCancel(ctx), "rm -f "+h.policy) },
		shell(ctx, `printf '#!/bin/sh\nexit 101\n' >`+h.policy+" && chmod 755 "+h.policy)
}

// unitPatterns are the systemd units that the packages bring along.
var unitPatterns = []string{"postgresql*.service", "redis*.service", "valkey*.service", "nginx.service"}

// enabledUnits lists the ones that were set up to start at boot, or nil without systemd.
func enabledUnits(ctx context.Context) map[string]bool {
	if _, err := os.Stat("/run/systemd/system"); err != nil {
		return nil
	}
	args := append([]string{"list-unit-files", "--no-legend", "--state=enabled"}, unitPatterns...)
	out, _ := exec.CommandContext(ctx, "systemctl", args...).Output() //nolint:gosec // our own patterns
	units := map[string]bool{}
	for line := range strings.Lines(string(out)) {
		if fields := strings.Fields(line); len(fields) > 0 {
			units[fields[0]] = true
		}
	}
	return units
}

// disableNewUnits stops what was not enabled before, now and at the next boot.
func (h host) disableNewUnits(ctx context.Context, out io.Writer, m manager, before map[string]bool) error {
	for unit := range enabledUnits(ctx) {
		if before[unit] {
			continue
		}
		if err := h.run(ctx, context.Background(), out, m, "systemctl", "disable", "--now", unit); err != nil {
			return err
		}
	}
	return nil
}
