package main

import (
	"context"
	"fmt"
	"os/exec"
	"regexp"
	"runtime"

	"github.com/shirou/gopsutil/v4/cpu"
	"github.com/shirou/gopsutil/v4/load"

	"github.com/oncepay/oncepay/internal/programs"
)

var versionNumber = regexp.MustCompile(`\d+\.\d+(\.\d+)?`)

// thisMachine says where the figures are from, and how busy it is. What is not found is left out.
func thisMachine(ctx context.Context) (machine string, busy float64) {
	model := "unknown model"
	if cpus, _ := cpu.InfoWithContext(ctx); len(cpus) > 0 {
		model = cpus[0].ModelName
	}
	if average, err := load.AvgWithContext(ctx); err == nil {
		busy = average.Load1
	}
	version := func(p *programs.Program, flag string) string {
		path, _ := p.Find()
		printed, _ := exec.CommandContext(ctx, path, flag).CombinedOutput()
		return versionNumber.FindString(string(printed))
	}
	return fmt.Sprintf("%d cores (%s), %s/%s, %s, PostgreSQL %s, Redis %s, nginx %s", runtime.NumCPU(), model, runtime.GOOS, runtime.GOARCH,
		runtime.Version(), version(programs.PostgreSQL, "--version"), version(programs.Redis, "--version"), version(programs.Nginx, "-v")), busy
}
