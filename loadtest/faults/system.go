package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/oncepay/oncepay/internal/stack"
	"github.com/oncepay/oncepay/loadtest/faults/fault"
)

// The systems that this package knows: the one that is verified, and the one that protects nothing.
// loadtest/others has the others.
const ours, control = "oncepay", "none"

const (
	// failpoints is the build tag of replicas that can be made to die at an instruction.
	failpoints = "failpoints"
	// othersModule makes the replicas' program of the other systems.
	othersModule = "loadtest/others"
	// stuckAfter is for how long a key may be in progress: our lease, and patience.
	stuckAfter = fault.Lease + 10*time.Second
)

// errBlind says that a campaign found nothing wrong with a system that protects nothing.
var errBlind = errors.New("nothing happened twice without any protection: this campaign is inconclusive")

// other says that a run is a comparison: what goes wrong is counted.
func (c config) other() bool { return c.System != ours }

// programsOf are the programs that run in place of the oncepay that the stack builds: an earlier
// release at first, or another system, which is built.
func programsOf(ctx context.Context, cfg config) (map[string]string, error) {
	if !cfg.other() && cfg.Base == "" {
		return nil, nil
	}
	if !cfg.other() {
		return map[string]string{stack.API1: cfg.Base, stack.API2: cfg.Base, stack.Oncepay: cfg.Base}, nil
	}
	program, err := filepath.Abs(filepath.Join(cfg.Out, "others"))
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, "go", "build", "-C", othersModule, "-tags", failpoints, "-o", program, ".")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if output, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("build %s: %w\n%s", othersModule, err, output)
	}
	return map[string]string{stack.API1: program, stack.API2: program}, nil
}

// unproved says why a comparison is inconclusive.
func (c *campaign) unproved() error {
	var errs []error
	for _, v := range c.violations {
		errs = append(errs, errors.New(v.String()))
	}
	if c.cfg.System == control && c.score.DoubledKeys == 0 {
		errs = append(errs, errBlind)
	}
	return errors.Join(errs...)
}
