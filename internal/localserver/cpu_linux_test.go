package localserver

import (
	"context"
	"errors"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/internal/wait"
)

// burn uses CPU until it is ended.
const burn = "while :; do :; done"

// TestCPUTime_HasTheChildren: the shell itself only waits for what burns.
func TestCPUTime_HasTheChildren(t *testing.T) {
	t.Parallel()
	for name, script := range map[string]string{
		"of its own":        burn,
		"of a child":        "(" + burn + ") & wait",
		"of one that ended": "i=0; (while [ $i -lt 300000 ]; do i=$((i+1)); done) & wait; exec sleep 600",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cmd := exec.CommandContext(t.Context(), "sh", "-c", script)
			cmd.SysProcAttr = sysProcAttr(nil, syscall.SIGKILL)
			require.NoError(t, cmd.Start())
			t.Cleanup(func() { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL); _ = cmd.Wait() })
			require.NoError(t, wait.For(t.Context(), testTimeout, PollInterval, func(context.Context) error {
				used, err := CPUTime(cmd.Process.Pid)
				if err == nil && used < 50*time.Millisecond {
					return errors.New("too little")
				}
				return err
			}))
		})
	}
}

func TestCPUTime_OfNobodyIsAnError(t *testing.T) {
	t.Parallel()
	_, err := CPUTime(1 << 30)
	require.Error(t, err)
}
