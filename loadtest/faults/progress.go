package main

import (
	"fmt"

	"github.com/oncepay/oncepay/loadtest/faults/verify"
	"github.com/oncepay/oncepay/loadtest/report"
)

// showProgress prints how far the campaign is, until it is stopped.
func (c *campaign) showProgress() (stop func()) {
	watch := verify.NewWatch()
	return report.Progress(c.out, func() string {
		attempts := c.journal.Attempts()
		return fmt.Sprintf("%4.0fs  faults %3d  attempts %6d  in flight %3d  violations %d  %v", c.elapsed().Seconds(), c.count.Load(),
			len(attempts), c.wire.InFlight(), watch.Look(attempts), c.phase.Load())
	})
}
