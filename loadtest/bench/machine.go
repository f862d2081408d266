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

// machine says where the figures are from.
type machine struct{ text, load string }

var (
	modelName     = regexp.MustCompile(`(?m)^model name\s*: (.*)$`)
	versionNumber = regexp.MustCompile(`\d+\.\d+(\.\d+)?`)
)

// thisMachine leaves out what it does not find.
func thisMachine(ctx context.Context) machine {
	cpus, _ := os.ReadFile("/proc/cpuinfo")
	load, _ := os.ReadFile("/proc/loadavg")
	model := "unknown model"
	if found := modelName.FindSubmatch(cpus); found != nil {
		model = strings.Join(strings.Fields(string(found[1])), " ")
	}
	version := func(p *programs.Program, flag string) string {
		path, _ := p.Find()
		printed, _ := exec.CommandContext(ctx, path, flag).CombinedOutput()
		return versionNumber.FindString(string(printed))
	}
	first, _, _ := strings.Cut(string(load), " ")
	return machine{
		text: fmt.Sprintf("%d cores (%s), %s/%s, %s, PostgreSQL %s, Redis %s, nginx %s", runtime.NumCPU(), model, runtime.GOOS, runtime.GOARCH,
			runtime.Version(), version(programs.PostgreSQL, "--version"), version(programs.Redis, "--version"), version(programs.Nginx, "-v")),
		load: first,
	}
}
