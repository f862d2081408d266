package nemesis

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"
)

const (
	// fireTimeout is how long an armed failpoint may wait for a request to reach it.
	fireTimeout = 6 * time.Second
	// tick is how often a failpoint is looked after.
	tick = 50 * time.Millisecond
	// opsTimeout bounds a call to an operations port.
	opsTimeout = time.Second
)

// diePoint has a replica die at an instruction.
func (s *Scheduler) diePoint(point string) *Fault {
	r, skip := s.replica(), s.random.IntN(20)
	if point == "before-provider" || point == "after-provider" {
		skip = s.random.IntN(5) // rarer
	}
	f := &Fault{Name: "kill " + r + " " + point, Dies: r, rank: 1, victims: []string{r}, needs: true}
	f.inject = func(ctx context.Context) error {
		if err := s.arm(ctx, r, fmt.Sprintf("%s?skip=%d", point, skip)); err != nil {
			return err
		}
		f.Died = time.Now()
		return until(ctx, func() bool {
			looked := time.Now()
			if s.lives(ctx, r) {
				f.Died = looked
				return false
			}
			return true
		})
	}
	f.heal = func(ctx context.Context) error {
		_ = s.ops(ctx, http.MethodDelete, r, "/failpoints") // a dead replica has none armed
		return s.target.Stack.Do(ctx, "start", r)
	}
	return f
}

// pausePoint has one request stop at an instruction, past its lease, while the replica goes on.
func (s *Scheduler) pausePoint() *Fault {
	r, point := s.replica(), points[s.random.IntN(len(points))]
	return &Fault{Name: "pause a request of " + r + " " + point, Hold: pastLease, victims: []string{r}, needs: true,
		inject: func(ctx context.Context) error {
			if err := s.arm(ctx, r, point+"?pause="+pastLease.String()); err != nil {
				return err
			}
			return until(ctx, func() bool { return s.ops(ctx, http.MethodGet, r, "/failpoints/"+point) != nil })
		},
		heal: func(ctx context.Context) error { return s.ops(ctx, http.MethodDelete, r, "/failpoints") }}
}

func (s *Scheduler) arm(ctx context.Context, replica, point string) error {
	return s.ops(ctx, http.MethodPost, replica, "/failpoints/"+point)
}

func (s *Scheduler) ops(ctx context.Context, method, replica, path string) error {
	ctx, cancel := context.WithTimeout(ctx, opsTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, method, "http://"+s.target.Ops[replica]+path, http.NoBody)
	if err != nil {
		return err
	}
	request.Close = true
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	if answer.StatusCode != http.StatusNoContent {
		err = fmt.Errorf("the operations port answers %s: was it built with failpoints?", answer.Status)
	}
	return errors.Join(err, answer.Body.Close())
}

// until waits for a failpoint to fire.
func until(ctx context.Context, fired func() bool) error {
	for deadline := time.After(fireTimeout); !fired(); {
		select {
		case <-time.After(tick):
		case <-deadline:
			return ErrNotFired
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// lives asks the operations port, which is there as long as the process is.
func (s *Scheduler) lives(ctx context.Context, replica string) bool {
	conn, err := (&net.Dialer{Timeout: opsTimeout}).DialContext(ctx, "tcp", s.target.Ops[replica])
	if err != nil {
		return false
	}
	_ = conn.Close()
	return true
}
