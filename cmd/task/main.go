// Command task is `go tool -modfile=tools/go.mod task`: it installs what the tasks on its command
// line need, and then runs them with the task runner (taskfile.dev). It asks before anything is
// compiled, so it imports the standard library alone. `task --programs NAME…` only installs.
// NO_INSTALL=1 names a command to paste instead.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"syscall"

	"github.com/oncepay/oncepay/internal/programs"
)

// runner is the task runner, which tools/go.mod names the version of.
const runner = "github.com/go-task/task/v3/cmd/task"

func main() {
	err := toRoot()
	if err == nil {
		err = run(os.Args[1:])
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "task:", err)
		os.Exit(1)
	}
}

// toRoot changes to the folder of the Taskfile: a user may be in one below it.
func toRoot() error {
	for {
		if _, err := os.Stat("Taskfile.yml"); err == nil {
			return nil
		}
		here, err := os.Getwd()
		if err != nil {
			return err
		}
		if here == filepath.Dir(here) {
			return errors.New("there is no Taskfile.yml here or above: change to the clone of oncepay")
		}
		if err := os.Chdir(".."); err != nil {
			return err
		}
	}
}

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
	return execRunner(args)
}

// execRunner becomes the task runner, so that signals and the exit status are its own.
func execRunner(args []string) error {
	const path = "bin/task"
	if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		return fmt.Errorf("this clone cannot be written to: %w; clone it to a folder of your own", err)
	}
	if _, err := os.Stat(path); err != nil {
		fmt.Println("building the task runner (half a minute the first time)")
	}
	build := exec.Command("go", "build", "-modfile=tools/go.mod", "-o", path, runner) //nolint:noctx // ends with us
	build.Stdout, build.Stderr = os.Stdout, os.Stderr
	if err := build.Run(); err != nil {
		return fmt.Errorf("build the task runner: %w", err)
	}
	return syscall.Exec(path, append([]string{"task"}, args...), os.Environ()) //nolint:gosec // our own caller's arguments
}
