// Package deployment is what both drivers of a stack build on: the stack's folder with its lock and
// its state, our programs, the lines of progress, and the question whether a service is ready.
package deployment

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/oncepay/oncepay/internal/stack/topology"
)

// StopGrace is how long a service may take to end in order before it is killed. A replica that is
// busy with a slow payment could take a minute. Whoever stops a stack by hand does not want to wait
// for it, and nothing is lost.
const StopGrace = 10 * time.Second

// ProviderData is the file in a stack's folder in which a native provider keeps its books.
const ProviderData = "pspsim.journal"

// MailData is the file of the mails that were sent, in the stack's folder.
const MailData = "mails.jsonl"

// ErrNothingStarted marks a refusal: `up` has changed nothing.
var ErrNothingStarted = errors.New("nothing was started")

// PortsTaken makes a refusal of an error about ports; nil stays nil.
func PortsTaken(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%w\n%w (stop what is there, or take other ports with --port-offset 1000)", err, ErrNothingStarted)
}

// Condition is what a driver knows of a service's process or container.
type Condition struct {
	State string // Running, Paused or Stopped
	ID    string // pid or container
}

// The states of a Condition.
const (
	Running = "running"
	Paused  = "paused"
	Stopped = "stopped"
)

// Deployment is one stack's folder and what is known of the stack.
type Deployment struct {
	// Root is the repository's root.
	Root string
	// Dir is the stack's folder.
	Dir string
	// Out gets the progress.
	Out io.Writer
	// BuildTags compile our programs with build constraints, such as failpoints.
	BuildTags string
	// State is what the stack remembers.
	State *State
	// Topology is the state's, so that a decision of `up` or `promote` counts at once.
	*topology.Topology
}

// New returns the deployment of a folder, relative to the repository's root, whether a stack is in
// it or not. Must be called in the repository.
func New(dir string, out io.Writer) (*Deployment, error) {
	root, err := findRoot()
	if err != nil {
		return nil, err
	}
	if !filepath.IsAbs(dir) {
		dir = filepath.Join(root, dir)
	}
	d := &Deployment{Root: root, Dir: dir, Out: out}
	return d, d.Load()
}

// Load reads the state again: other commands may have changed it.
func (d *Deployment) Load() (err error) {
	if d.State, err = loadState(d.Dir); err != nil {
		return err
	}
	d.Topology = &d.State.Data.Topology
	return nil
}

// LogPath is the file that a service or a step writes to.
func (d *Deployment) LogPath(name string) string { return filepath.Join(d.Dir, "logs", name+".log") }

// findRoot walks up from the working directory to our go.mod.
func findRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("find the repository: %w", err)
	}
	for {
		module, _ := os.ReadFile(filepath.Join(dir, "go.mod"))
		if bytes.HasPrefix(module, []byte("module github.com/oncepay/oncepay\n")) {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", errors.New("run this inside the oncepay repository")
		}
		dir = filepath.Dir(dir)
	}
}

// Interrupted reports whether the user pressed Ctrl-C, or the like.
func Interrupted(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, syscall.EINTR)
}
