package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"strings"

	"github.com/oncepay/oncepay/internal/programs"
)

var (
	modelName     = regexp.MustCompile(`(?m)^model name\s*: (.*)$`)
	versionNumber = regexp.MustCompile(`\d+\.\d+(\.\d+)?`)
)

// thisMachine says where the figures are from, and how busy it is. What is not found is left out.
func thisMachine(ctx context.Context) (machine, load string) {
	cpus, _ := os.ReadFile("/proc/cpuinfo")
	loads, _ := os.ReadFile("/proc/loadavg")
	model := "unknown model"
	if found := modelName.FindSubmatch(cpus); found != nil {
		model = strings.Join(strings.Fields(string(found[1])), " ")
	}
	version := func(p *programs.Program, flag string) string {
		path, _ := p.Find()
		printed, _ := exec.CommandContext(ctx, path, flag).CombinedOutput()
		return versionNumber.FindString(string(printed))
	}
	load, _, _ = strings.Cut(string(loads), " ")
	return fmt.Sprintf("%d cores (%s), %s/%s, %s, PostgreSQL %s, Redis %s, nginx %s", runtime.NumCPU(), model, runtime.GOOS, runtime.GOARCH,
		runtime.Version(), version(programs.PostgreSQL, "--version"), version(programs.Redis, "--version"), version(programs.Nginx, "-v")), load
}
