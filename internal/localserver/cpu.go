package localserver

import "time"

// CPUTime is the CPU time that a process and all its children, including those that have ended,
// have used so far, in all threads. So the difference between two calls is all that a server of
// several processes has done meanwhile. Its resolution is a hundredth of a second. It returns
// errors.ErrUnsupported where the system is not Linux.
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
