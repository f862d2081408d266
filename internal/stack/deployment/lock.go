package deployment

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/oncepay/oncepay/internal/localserver"
	"github.com/oncepay/oncepay/internal/wait"
)

// lockTimeout bounds the wait for another command on the same stack: a first `up` may build and
// install for minutes.
const lockTimeout = 15 * time.Minute

// LockName is the lock file in a stack's folder. It also marks the folder as ours.
const LockName = "stack.lock"

// Claimed reports whether the folder is a stack's.
func (d *Deployment) Claimed() bool { return localserver.IsFile(filepath.Join(d.Dir, LockName)) }

// Locked does something while no other command does, with the state as the last one left it.
func (d *Deployment) Locked(ctx context.Context, do func(context.Context) error) error {
	unlock, err := lockDir(ctx, d.Dir, func(pid int) {
		d.Printf("waiting for another stack command (pid %d) …\n", pid)
	})
	if err != nil {
		return err
	}
	defer unlock()
	if err := d.Load(); err != nil {
		return err
	}
	return do(ctx)
}

// lockDir makes the stack's folder and waits until no other command works on it. If that takes
// longer than a moment, waiting is called once, with the pid of the other command.
func lockDir(ctx context.Context, dir string, waiting func(pid int)) (unlock func(), err error) {
	var file *os.File
	tries := 0
	err = wait.For(ctx, lockTimeout, localserver.PollInterval, func(context.Context) error {
		var holder int
		if file, holder, err = tryLock(dir); err != nil {
			return wait.Stop(err)
		}
		if tries++; tries == 50 && file == nil && waiting != nil {
			waiting(holder)
		}
		if file == nil {
			return fmt.Errorf("another stack command (pid %d) is at work", holder)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("lock %s: %w", dir, err)
	}
	return func() { _ = file.Close() }, nil
}

// tryLock returns the locked file, or nil and the pid of the holder.
func tryLock(dir string) (*os.File, int, error) {
	path := filepath.Join(dir, LockName)
	var file *os.File
	err := claimDir(dir)
	if err == nil {
		file, err = os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	}
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, os.ErrExist) {
		return nil, 0, nil // a `down` has just removed the folder, perhaps while we made it (mkdir: file exists)
	}
	if err != nil {
		return nil, 0, err
	}
	err = syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		content, _ := os.ReadFile(path)
		holder, _ := strconv.Atoi(strings.TrimSpace(string(content)))
		return nil, holder, file.Close()
	}
	if err != nil {
		return nil, 0, errors.Join(err, file.Close())
	}
	if !sameFile(file, path) { // a `down` removed the folder between our open and our lock
		return nil, 0, file.Close()
	}
	err = errors.Join(file.Truncate(0), writePID(file))
	return file, 0, err
}

// claimDir makes the folder, or checks that it is one of ours: `down` removes it with everything in
// it.
func claimDir(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) == 0 {
		return err
	}
	for _, entry := range entries {
		if entry.Name() == LockName {
			return nil
		}
	}
	return fmt.Errorf("%s holds files that are not a stack's: choose another --dir", dir)
}

// Remove removes the folder, which must be locked.
func (d *Deployment) Remove() error { return removeLocked(d.Dir) }

// removeLocked moves the folder away first, so that a command that waits for the lock makes a new
// folder instead of meeting half of the old one.
func removeLocked(dir string) error {
	doomed := fmt.Sprintf("%s.removed-%d", dir, time.Now().UnixNano())
	if err := os.Rename(dir, doomed); err != nil {
		return err
	}
	err := os.RemoveAll(doomed)
	if errors.Is(err, syscall.ENOTEMPTY) { // another process was just opening the lock in it
		err = os.RemoveAll(doomed)
	}
	return err
}

func sameFile(file *os.File, path string) bool {
	a, errA := file.Stat()
	b, errB := os.Stat(path)
	return errA == nil && errB == nil && os.SameFile(a, b)
}

func writePID(file *os.File) error {
	_, err := file.WriteAt([]byte(strconv.Itoa(os.Getpid())), 0)
	return err
}
