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

var modelName = regexp.MustCompile(`(?m)^model name\s*: (.*)$`)

func thisMachine(ctx context.Context) machine {
	model := "unknown model"
	cpus, _ := os.ReadFile("/proc/cpuinfo") // elsewhere the model stays unknown
	if found := modelName.FindSubmatch(cpus); found != nil {
		model = strings.Join(strings.Fields(string(found[1])), " ")
	}
	postgres, _ := programs.PostgreSQL.Find()
	redis, _ := programs.Redis.Find()
	nginx, _ := programs.Nginx.Find()
	load, _ := os.ReadFile("/proc/loadavg")
	return machine{
		text: fmt.Sprintf("%d cores (%s), %s/%s, %s, PostgreSQL %s, Redis %s, nginx %s", runtime.NumCPU(), model, runtime.GOOS, runtime.GOARCH,
			runtime.Version(), versionOf(ctx, postgres, "--version"), versionOf(ctx, redis, "--version"), versionOf(ctx, nginx, "-v")),
		load: strings.Join(strings.Fields(string(load))[:1], ""),
	}
}

var versionNumber = regexp.MustCompile(`\d+\.\d+(\.\d+)?`)

func versionOf(ctx context.Context, program, flag string) string {
	printed, _ := exec.CommandContext(ctx, program, flag).CombinedOutput() // no version is said then
	return versionNumber.FindString(string(printed))
}
