package journal

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// ErrTorn says that the last line is incomplete: the campaign was killed while it wrote. The lines
// before it are good.
var ErrTorn = errors.New("the journal's last line is torn")

// Read returns the attempts of a journal, with ErrTorn all but the last. A bad line with others
// after it is damage, and another error.
func Read(in io.Reader) ([]Attempt, error) {
	var attempts []Attempt
	lines := bufio.NewReader(in)
	for number := 1; ; number++ {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) && len(line) == 0 {
			return attempts, nil
		}
		if errors.Is(err, io.EOF) {
			return attempts, fmt.Errorf("line %d: %w", number, ErrTorn) // each ends with its line feed
		}
		if err != nil {
			return attempts, fmt.Errorf("read the journal: %w", err)
		}
		var a Attempt
		if err := json.Unmarshal(line, &a); err != nil {
			return attempts, fmt.Errorf("read the journal, line %d: %w", number, err)
		}
		attempts = append(attempts, a)
	}
}
