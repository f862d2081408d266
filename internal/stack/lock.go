package stack

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

// lockName is the file in a stack's folder that has the pid of the last command that locked the
// folder. It also marks the folder as ours.
const lockName = "stack.lock"

// Claimed reports whether the folder is a stack's.
func (s *Stack) Claimed() bool { return localserver.IsFile(filepath.Join(s.Dir, lockName)) }

// locked does something while no other command does, with the state as the last one left it.
func (s *Stack) locked(ctx context.Context, do func(context.Context) error) error {
	folder, err := s.lock(ctx)
	if err != nil {
		return fmt.Errorf("lock %s: %w", s.Dir, err)
	}
	defer func() { _ = folder.Close() }()
	if err := s.load(); err != nil {
		return err
	}
	return do(ctx)
}

// lock makes the stack's folder and waits until no other command works on it. If that takes longer
// than a moment, it says so.
func (s *Stack) lock(ctx context.Context) (folder *os.File, err error) {
	tries := 0
	err = wait.For(ctx, lockTimeout, localserver.PollInterval, func(context.Context) error {
		if folder, err = tryLock(s.Dir); err != nil {
			return wait.Stop(err)
		}
		if folder != nil {
			return nil
		}
		holder, _ := os.ReadFile(filepath.Join(s.Dir, lockName))
		if tries++; tries == 50 {
			s.printf("waiting for another stack command (pid %s) …\n", holder)
		}
		return fmt.Errorf("another stack command (pid %s) is at work", holder)
	})
	if err != nil {
		return nil, err
	}
	if err := claim(s.Dir); err != nil {
		return nil, errors.Join(err, folder.Close())
	}
	return folder, nil
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
	isLock := func(entry os.DirEntry) bool { return entry.Name() == lockName }
	if len(entries) > 0 && !slices.ContainsFunc(entries, isLock) {
		return errors.New("it holds files that are not a stack's: choose another --dir")
	}
	return errors.Join(err, os.WriteFile(filepath.Join(dir, lockName), []byte(strconv.Itoa(os.Getpid())), 0o644))
}

// remove removes the folder, which must be locked. The mark goes last: if this is interrupted, the
// folder is still known as ours.
func (s *Stack) remove() error {
	entries, err := os.ReadDir(s.Dir)
	for _, entry := range entries {
		if entry.Name() != lockName {
			err = errors.Join(err, os.RemoveAll(filepath.Join(s.Dir, entry.Name())))
		}
	}
	if err != nil {
		return err
	}
	return os.RemoveAll(s.Dir)
}
