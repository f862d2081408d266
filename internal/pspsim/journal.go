package pspsim

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"syscall"
)

// journal is an append-only file of lines. Appending is cheap and only orders the lines; sync makes
// them durable. Callers that sync at the same time share one write and one fsync: the first one
// to get the lock writes all pending lines, and the others find theirs already on disk.
type journal struct {
	file *os.File

	appending sync.Mutex // guards the next two
	pending   []byte
	end       int64 // bytes appended since the start, whether synced or not

	syncing sync.Mutex // held over write and fsync; guards the next two
	synced  int64
	err     error // sticky: after a failed fsync it is unknown what is on disk
}

// openJournal opens or creates the file, locks it against a second process, and hands each line to
// replay. A last line without its newline was torn by a crash before its answer was sent, so it
// is cut off; torn is its length in bytes. Any other damage is an error, because it would mean lost
// charges.
func openJournal(path string, replay func(line []byte) error) (j *journal, torn int, err error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
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
	// What was replayed may have been written but not synced by a killed process.
	folder, err := os.Open(filepath.Dir(path))
	if err != nil {
		return nil, 0, err
	}
	err = errors.Join(file.Truncate(int64(len(whole))), file.Sync(), folder.Sync(), folder.Close())
	return &journal{file: file}, len(text) - len(whole), err
}

// append queues a line, which must end in a newline. Lines reach the file in the order of the
// calls.
func (j *journal) append(line []byte) {
	j.appending.Lock()
	defer j.appending.Unlock()
	j.pending = append(j.pending, line...)
	j.end += int64(len(line))
}

// sync returns once every line that was appended before is on disk. After an error nothing more can
// be written.
func (j *journal) sync() error {
	j.appending.Lock()
	appended := j.end
	j.appending.Unlock()
	j.syncing.Lock()
	defer j.syncing.Unlock()
	if j.err != nil || j.synced >= appended {
		return j.err
	}
	j.appending.Lock()
	batch, end := j.pending, j.end
	j.pending = nil
	j.appending.Unlock()

	_, err := j.file.Write(batch)
	if err == nil {
		err = j.file.Sync()
	}
	if err != nil {
		j.err = fmt.Errorf("write journal: %w", err)
		return j.err
	}
	j.synced = end
	return nil
}

func (j *journal) close() error {
	return errors.Join(j.sync(), j.file.Close())
}
