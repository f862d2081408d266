package stack

import (
	"bytes"
	"errors"
	"os"
	"os/signal"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestStep_SaysWhatItHasComeTo(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		s := &Stack{Topology: &Topology{}, options: Options{Out: &out}}
		require.NoError(t, s.step("build", "", func() (string, error) {
			time.Sleep(11 * time.Second)
			return "oncepay", nil
		}))
		failing := func() (string, error) { return "", errors.New("no engine") }
		require.EqualError(t, s.step("image", "", failing), "image: no engine")
		require.Equal(t, "  build                              oncepay                       11.0 s\n"+
			"  image                              FAILED                         0.0 s\n", out.String())
	})
}

// TestInterrupts_LeaveAHangUpToNohup changes what all of the process do with the signal.
func TestInterrupts_LeaveAHangUpToNohup(t *testing.T) { //nolint:paralleltest // see above
	t.Cleanup(func() { signal.Reset(syscall.SIGHUP) })
	signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP) // the tests may run under nohup themselves
	require.Contains(t, Interrupts(), os.Signal(syscall.SIGHUP))
	signal.Ignore(syscall.SIGHUP)
	require.Equal(t, []os.Signal{os.Interrupt, syscall.SIGTERM}, Interrupts())
}
