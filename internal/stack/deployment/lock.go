package deployment

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"time"

	"github.com/oncepay/oncepay/internal/localserver"
	"github.com/oncepay/oncepay/internal/wait"
)

// lockTimeout bounds the wait for another command on the same stack: a first `up` may build and
// install for minutes.
const lockTimeout = 15 * time.Minute

// LockName is the file in a stack's folder that has the pid of the last command that locked the
// folder. It also marks the folder as ours.
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
	var folder *os.File
	tries := 0
	err = wait.For(ctx, lockTimeout, localserver.PollInterval, func(context.Context) error {
		if folder, err = tryLock(dir); err != nil {
			return wait.Stop(err)
		}
		if folder != nil {
			return nil
		}
		content, _ := os.ReadFile(filepath.Join(dir, LockName))
		holder, _ := strconv.Atoi(string(content))
		if tries++; tries == 50 && waiting != nil {
			waiting(holder)
		}
		return fmt.Errorf("another stack command (pid %d) is at work", holder)
	})
	if err != nil {
		return nil, fmt.Errorf("lock %s: %w", dir, err)
	}
	if err := claim(dir); err != nil {
		return nil, errors.Join(fmt.Errorf("lock %s: %w", dir, err), folder.Close())
	}
	return func() { _ = folder.Close() }, nil
}

// tryLock returns the locked folder, or nil if another command has it, or has just removed it.
func tryLock(dir string) (folder *os.File, err error) {
	if err = os.MkdirAll(dir, 0o755); err == nil {
		folder, err = os.Open(dir)
	}
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, os.ErrExist) {
		return nil, nil // a `down` has removed it since, perhaps while we made it (mkdir: file exists)
	}
	if err != nil {
		return nil, err
	}
	err = syscall.Flock(int(folder.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return nil, folder.Close()
	}
	locked, statErr := folder.Stat()
	if err = errors.Join(err, statErr); err != nil {
		return nil, errors.Join(err, folder.Close())
	}
	if there, err := os.Stat(dir); err != nil || !os.SameFile(locked, there) {
		return nil, folder.Close() // a `down` removed the folder between our open and our lock
	}
	return folder, nil
}

// claim marks a locked folder as ours, if it is empty or was so: `down` removes it with everything
// in it.
func claim(dir string) error {
	entries, err := os.ReadDir(dir)
	isLock := func(entry os.DirEntry) bool { return entry.Name() == LockName }
	if len(entries) > 0 && !slices.ContainsFunc(entries, isLock) {
		return errors.New("it holds files that are not a stack's: choose another --dir")
	}
	return errors.Join(err, os.WriteFile(filepath.Join(dir, LockName), []byte(strconv.Itoa(os.Getpid())), 0o644))
}

// Remove removes the folder, which must be locked. The mark goes last: if this is interrupted, the
// folder is still known as ours.
func (d *Deployment) Remove() error {
	if err := d.DropAllBut(LockName); err != nil {
		return err
	}
	return os.RemoveAll(d.Dir)
}

// DropAllBut removes what is in the folder, but not these entries.
func (d *Deployment) DropAllBut(keep ...string) error {
	entries, err := os.ReadDir(d.Dir)
	for _, entry := range entries {
		if !slices.Contains(keep, entry.Name()) {
			err = errors.Join(err, os.RemoveAll(filepath.Join(d.Dir, entry.Name())))
		}
	}
	return err
}
