package localserver

import "time"

// CPUTime is the CPU time, of all threads, that a process and its children have used since they
// started, and those children that have ended. So the difference between two calls is all that a
// server of several processes has done meanwhile. Its resolution is a hundredth of a second. It
// returns errors.ErrUnsupported where the system is not Linux.
func CPUTime(pid int) (time.Duration, error) {
	total, err := cpuTime(pid)
	if err != nil {
		return 0, err
	}
	pids, err := children(pid)
	if err != nil {
		return 0, err
	}
	for _, child := range pids {
		if used, err := cpuTime(child); err == nil { // one that has ended counts for its parent
			total += used
		}
	}
	return total, nil
}
