package outbox

import (
	"fmt"
	"strconv"
	"strings"
)

// EntryID orders the entries of a stream (Redis manual, "Redis Streams", "Entry IDs").
type EntryID struct{ millisecond, sequence uint64 }

func parseEntryID(text string) (id EntryID, err error) {
	millisecond, sequence, _ := strings.Cut(text, "-")
	if id.millisecond, err = strconv.ParseUint(millisecond, 10, 64); err == nil {
		id.sequence, err = strconv.ParseUint(sequence, 10, 64)
	}
	if err != nil {
		return EntryID{}, fmt.Errorf("entry ID %q: %w", text, err)
	}
	return id, nil
}

// Before compares two IDs.
func (id EntryID) Before(other EntryID) bool {
	if id.millisecond != other.millisecond {
		return id.millisecond < other.millisecond
	}
	return id.sequence < other.sequence
}

// Next is the smallest ID after this one.
func (id EntryID) Next() EntryID { return EntryID{id.millisecond, id.sequence + 1} }

func (id EntryID) String() string { return fmt.Sprintf("%d-%d", id.millisecond, id.sequence) }
