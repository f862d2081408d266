// Command task is `go tool -modfile=tools/go.mod task`: it installs what the tasks on its command
// line need, and then runs them with the task runner (taskfile.dev). It asks before anything is
// compiled, so it imports the standard library alone. `task --programs NAME…` only installs.
// NO_INSTALL=1 names a command to paste instead.
package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"syscall"

	"github.com/oncepay/oncepay/internal/programs"
)

// The task runner, which tools/go.mod names the version of, and where it is built.
const runner, binary = "github.com/go-task/task/v3/cmd/task", "bin/task"

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "task:", err)
		os.Exit(1)
	}
}

// run becomes the task runner, so that signals and the exit status are its own.
func run(args []string) error {
	tasks := args
	if i := slices.Index(args, "--"); i >= 0 {
		tasks = args[:i] // what follows is the task's
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := programs.Ensure(ctx, os.Stdout, os.Getenv("NO_INSTALL") != "", tasks...)
	stop()
	if err != nil || slices.Contains(tasks, "--programs") {
		return err
	}
	if _, err := os.Stat(binary); err != nil {
		fmt.Println("building the task runner (half a minute the first time)")
	}
	build := exec.Command("go", "build", "-modfile=tools/go.mod", "-o", binary, runner) //nolint:noctx // ends with us
	build.Stdout, build.Stderr = os.Stdout, os.Stderr
	if err := build.Run(); err != nil {
		return fmt.Errorf("build the task runner: %w", err)
	}
	return syscall.Exec(binary, append([]string{"task"}, args...), os.Environ()) //nolint:gosec // our own caller's arguments
}
