package pspsim

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
)

// journal is a file of lines. A line that was appended survives the process, also a SIGKILL: the
// kernel has it. It need not survive the machine. One goroutine at a time may append.
type journal struct {
	file *os.File
	size int64 // of the whole lines
}

// openJournal opens or creates the file, locks it against a second process, and hands each line to
// replay. A last line without its newline was torn by a crash before its answer was sent, so it
// is cut off; torn is its length in bytes. Any other damage is an error, because it would mean lost
// charges.
func openJournal(path string, replay func(line []byte) error) (j *journal, torn int, err error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, 0, fmt.Errorf("open journal: %w", err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("journal %s: %w", path, err), file.Close())
		}
	}()
	// The kernel drops the lock with the process, also on kill -9.
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return nil, 0, fmt.Errorf("is another pspsim using it? %w", err)
	}
	text, err := io.ReadAll(file)
	if err != nil {
		return nil, 0, err
	}
	whole := text[:bytes.LastIndexByte(text, '\n')+1]
	number := 0
	for line := range bytes.Lines(whole) {
		number++
		if err := replay(line); err != nil {
			return nil, 0, fmt.Errorf("line %d: %w", number, err)
		}
	}
	return &journal{file, int64(len(whole))}, len(text) - len(whole), file.Truncate(int64(len(whole)))
}

// append writes a line, which must end in a newline. After an error the next line is written over
// what there is of this one.
func (j *journal) append(line []byte) error {
	if _, err := j.file.WriteAt(line, j.size); err != nil {
		return fmt.Errorf("write journal: %w", err)
	}
	j.size += int64(len(line))
	return nil
}
