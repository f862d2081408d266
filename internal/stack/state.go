package stack

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/oncepay/oncepay/internal/localserver"
)

// state is what the stack remembers between commands, in state.json of its folder. It is safe for
// concurrent use; every change is on disk before the call returns, so that an aborted command
// leaves nothing unknown behind.
type state struct {
	mu   sync.Mutex
	path string
	data stateData
}

type stateData struct {
	Driver     string                  `json:"driver"`
	PortOffset int                     `json:"port_offset"`
	Direct     bool                    `json:"direct,omitempty"`   // Options.Direct
	Postgres   string                  `json:"postgres,omitempty"` // Standby, SyncStandby, or empty for a single server
	Promoted   bool                    `json:"promoted,omitempty"` // the standby has taken over
	Redis      string                  `json:"redis,omitempty"`    // Sentinel, or empty for a single server
	Env        []string                `json:"env,omitempty"`      // KEY=VALUE for both replicas
	Replica    string                  `json:"replica,omitempty"`  // Options.ReplicaProgram
	Images     map[string]string       `json:"images,omitempty"`
	Services   map[string]serviceState `json:"services,omitempty"` // native driver only
}

// serviceState is what is known of a native service.
type serviceState struct {
	Process  localserver.Process `json:"process"`
	Settings string              `json:"settings"`      // digest of everything it was started with
	Dir      string              `json:"dir,omitempty"` // where its files are
	Started  time.Time           `json:"started"`
}

func loadState(dir string) (*state, error) {
	s := &state{path: filepath.Join(dir, "state.json")}
	raw, err := os.ReadFile(s.path)
	if errors.Is(err, fs.ErrNotExist) {
		return s, nil
	}
	if err == nil {
		err = json.Unmarshal(raw, &s.data)
	}
	if err != nil {
		return nil, fmt.Errorf("read the stack's state %s: %w", s.path, err)
	}
	return s, nil
}

// update changes the state and saves it.
func (s *state) update(change func(*stateData)) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(&s.data)
	raw, err := json.MarshalIndent(&s.data, "", "  ")
	if err != nil {
		return fmt.Errorf("save the stack's state: %w", err)
	}
	// Written beside and renamed, because status reads it without the lock.
	if err := os.WriteFile(s.path+".new", raw, 0o644); err != nil {
		return fmt.Errorf("save the stack's state: %w", err)
	}
	return os.Rename(s.path+".new", s.path)
}

func (s *state) service(name string) serviceState {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.data.Services[name]
}

func (s *state) setService(name string, service serviceState) error {
	return s.update(func(d *stateData) {
		if d.Services == nil {
			d.Services = map[string]serviceState{}
		}
		d.Services[name] = service
	})
}
