package memstore

import "time"

// Plant puts bytes under a key as they are.
func (s *Store) Plant(scope, key string, data []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.entries[id{scope, key}] = entry{data, time.Now().Add(time.Hour)}
}

// Len counts records, expired ones included.
func (s *Store) Len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.entries)
}
