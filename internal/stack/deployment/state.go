package deployment

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"github.com/oncepay/oncepay/internal/localserver"
	"github.com/oncepay/oncepay/internal/stack/topology"
)

// StateName is the file in a stack's folder that holds its state.
const StateName = "state.json"

// State is what the stack remembers between commands, in a file of its folder. It is safe for
// concurrent use. Every change is on disk before the call returns, so that an aborted command
// leaves nothing unknown behind.
type State struct {
	Data StateData

	mu   sync.Mutex
	path string
}

// StateData is what is in the file.
type StateData struct {
	Driver string `json:"driver"` // empty: no stack was brought up yet
	topology.Topology
	Env      []string                `json:"env,omitempty"` // KEY=VALUE for both replicas
	Programs map[string]string       `json:"programs"`      // what runs in place of the oncepay that is built, by service or Oncepay
	Images   map[string]string       `json:"images,omitempty"`
	Services map[string]ServiceState `json:"services,omitempty"` // native driver only
}

// ServiceState is what is known of a native service.
type ServiceState struct {
	Process  localserver.Process `json:"process"`
	Settings string              `json:"settings"`      // digest of everything it was started with
	Dir      string              `json:"dir,omitempty"` // where its files are
}

func loadState(dir string) (*State, error) {
	s := &State{path: filepath.Join(dir, StateName)}
	raw, err := os.ReadFile(s.path)
	if errors.Is(err, fs.ErrNotExist) {
		return s, nil
	}
	if err == nil {
		err = json.Unmarshal(raw, &s.Data)
	}
	if err != nil {
		return nil, fmt.Errorf("read the stack's state %s: %w", s.path, err)
	}
	return s, nil
}

// Update changes the state and saves it.
func (s *State) Update(change func(*StateData)) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(&s.Data)
	raw, err := json.MarshalIndent(&s.Data, "", "  ")
	if err != nil {
		return fmt.Errorf("save the stack's state: %w", err)
	}
	// Written beside and renamed, because status reads it without the lock.
	if err := os.WriteFile(s.path+".new", raw, 0o600); err != nil {
		return fmt.Errorf("save the stack's state: %w", err)
	}
	return os.Rename(s.path+".new", s.path)
}

// Service returns what is known of a service.
func (s *State) Service(name string) ServiceState {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.Data.Services[name]
}

// SetService remembers a service.
func (s *State) SetService(name string, service ServiceState) error {
	return s.Update(func(d *StateData) {
		if d.Services == nil {
			d.Services = map[string]ServiceState{}
		}
		d.Services[name] = service
	})
}
