package stack

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/oncepay/oncepay/internal/localserver"
)

// state is what the stack remembers between commands, in a file of its folder.
type state struct {
	Driver string `json:"driver"` // empty: no stack was brought up yet
	Topology
	Env      []string                `json:"env,omitempty"` // KEY=VALUE for both replicas
	Programs map[string]string       `json:"programs"`      // what runs in place of the oncepay that is built, by service or Oncepay
	Images   map[string]string       `json:"images,omitempty"`
	Services map[string]serviceState `json:"services,omitempty"` // native driver only
}

// serviceState is what is known of a native service.
type serviceState struct {
	Process  localserver.Process `json:"process"`
	Settings string              `json:"settings"`      // digest of everything it was started with
	Dir      string              `json:"dir,omitempty"` // where its files are
}

func (s *Stack) statePath() string { return filepath.Join(s.Dir, "state.json") }

// load reads the state again: other commands may have changed it.
func (s *Stack) load() error {
	s.state = &state{}
	s.Topology = &s.state.Topology // so that a decision of `up` or `promote` counts at once
	raw, err := os.ReadFile(s.statePath())
	switch {
	case errors.Is(err, fs.ErrNotExist):
		err = nil
	case err == nil:
		err = json.Unmarshal(raw, s.state)
	}
	if err != nil {
		return fmt.Errorf("read the stack's state %s: %w", s.statePath(), err)
	}
	s.driver = nil
	if s.state.Driver == "" {
		s.Offset = s.options.PortOffset
	} else {
		s.driver = s.newDriver()
	}
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

// remember says what is known of a native service from now on.
func (s *Stack) remember(name string, one serviceState) error {
	return s.update(func(d *state) {
		if d.Services == nil {
			d.Services = map[string]serviceState{}
		}
		d.Services[name] = one
	})
}
