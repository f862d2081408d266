package stack

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/oncepay/oncepay/internal/localserver"
	"github.com/oncepay/oncepay/internal/wait"
)

// stateName is the file in a stack's folder that has its state. It also marks the folder as ours.
const stateName = "state.json"

// state is what the stack remembers between commands.
type state struct {
	Driver string `json:"driver"` // empty: no stack was brought up yet
	Topology
	Env      []string                `json:"env,omitempty"` // KEY=VALUE for both replicas
	Programs map[string]string       `json:"programs"`      // in place of our oncepay, by service or Oncepay
	Images   map[string]string       `json:"images,omitempty"`
	Services map[string]serviceState `json:"services"` // native driver only
}

// serviceState is what is known of a native service.
type serviceState struct {
	Process  localserver.Process `json:"process"`
	Settings string              `json:"settings"`      // digest of everything it was started with
	Dir      string              `json:"dir,omitempty"` // where its files are
}

func (s *Stack) statePath() string { return filepath.Join(s.Dir, stateName) }

// Claimed reports whether the folder is a stack's.
func (s *Stack) Claimed() bool { return s.driver != nil }

// load reads the state again: other commands may have changed it.
func (s *Stack) load() error {
	s.state = &state{Services: map[string]serviceState{}}
	s.Topology = &s.state.Topology // so that a decision of `up` or `promote` counts at once
	raw, err := os.ReadFile(s.statePath())
	if errors.Is(err, fs.ErrNotExist) {
		s.driver, s.Offset = nil, s.options.PortOffset
		return nil
	}
	if err = errors.Join(err, json.Unmarshal(raw, s.state)); err != nil {
		return fmt.Errorf("read the stack's state %s: %w", s.statePath(), err)
	}
	s.driver = s.newDriver()
	return nil
}

// update changes the state and saves it before it returns, so that an aborted command leaves
// nothing unknown behind. Safe for concurrent use.
func (s *Stack) update(change func(*state)) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(s.state)
	raw, err := json.MarshalIndent(s.state, "", "  ")
	if err == nil { // written beside and renamed, because status reads it without the lock
		err = os.WriteFile(s.statePath()+".new", raw, 0o600)
	}
	if err != nil {
		return fmt.Errorf("save the stack's state: %w", err)
	}
	return os.Rename(s.statePath()+".new", s.statePath())
}

// known returns what is known of a native service.
func (s *Stack) known(name string) serviceState {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.state.Services[name]
}

// PID is the main process of a service. Native only.
func (s *Stack) PID(name string) int { return s.known(name).Process.PID }

// locked does something while no other command does, with the state as the last one left it. It
// makes the stack's folder, and refuses one that is another's: `down` removes it with all that is
// in it.
func (s *Stack) locked(ctx context.Context, do func() error) error {
	folder, err := s.lock(ctx, s.Dir)
	if err != nil {
		return err
	}
	defer func() { _ = folder.Close() }()
	if err := s.load(); err != nil {
		return err
	}
	if entries, err := os.ReadDir(s.Dir); err != nil || s.driver == nil && len(entries) > 0 {
		return errors.Join(err, fmt.Errorf("%s holds files that are not a stack's: choose another --dir", s.Dir))
	}
	return do()
}

// whileUp does something to a stack that is up, while no other command does.
func (s *Stack) whileUp(ctx context.Context, do func() error) error {
	if !s.Claimed() {
		return s.noStack()
	}
	return s.locked(ctx, func() error {
		if !s.Claimed() { // it was taken down meanwhile
			return errors.Join(s.noStack(), s.remove())
		}
		return do()
	})
}

// lock makes the folder and waits until no other command works on it. If it takes longer than a
// moment, it says so. A `down` may remove the folder meanwhile.
func (s *Stack) lock(ctx context.Context, dir string) (*os.File, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	folder, err := os.Open(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return s.lock(ctx, dir)
	}
	if err != nil {
		return nil, err
	}
	tries := 0
	err = wait.Until(ctx, localserver.PollInterval, func(context.Context) error {
		if tries++; tries == 50 {
			s.printf("waiting for another stack command …\n")
		}
		return syscall.Flock(int(folder.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("lock %s: %w", dir, err), folder.Close())
	}
	locked, _ := folder.Stat()
	if there, _ := os.Stat(dir); !os.SameFile(locked, there) {
		_ = folder.Close()
		return s.lock(ctx, dir)
	}
	return folder, nil
}

// remove removes the folder, which must be locked. The mark goes last: if this is interrupted, the
// folder is still known as ours.
func (s *Stack) remove() error {
	entries, err := os.ReadDir(s.Dir)
	for _, entry := range entries {
		if entry.Name() != stateName {
			err = errors.Join(err, os.RemoveAll(filepath.Join(s.Dir, entry.Name())))
		}
	}
	if err != nil {
		return err
	}
	return os.RemoveAll(s.Dir)
}
