package localserver

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// Unprivileged returns the user that servers run as when we are root, because PostgreSQL refuses to
// be root; nil means that we are another user already.
func Unprivileged() (*syscall.Credential, error) {
	if os.Geteuid() != 0 {
		return nil, nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		account, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, errUID := strconv.ParseUint(account.Uid, 10, 32)
		gid, errGID := strconv.ParseUint(account.Gid, 10, 32)
		if err := errors.Join(errUID, errGID); err != nil {
			return nil, fmt.Errorf("read the ids of user %s: %w", name, err)
		}
		return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, nil
	}
	return nil, errors.New("running as root, and there is neither a user postgres nor a user nobody to run PostgreSQL as")
}

// tempPrefix begins the name of every temporary directory that ServerDir makes.
const tempPrefix = "oncepay-"

// ServerDir makes the directory that a server runs in, owned by user. It is a temporary one when
// dir is empty or when that user could not enter it.
func ServerDir(dir, name string, user *syscall.Credential) (_ string, temporary bool, err error) {
	if dir != "" {
		if dir, err = filepath.Abs(dir); err != nil {
			return "", false, err
		}
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return "", false, err
		}
	}
	if dir == "" || !reachable(dir, user) {
		temporary = true
		if dir, err = os.MkdirTemp("", tempPrefix+name+"-"); err != nil {
			return "", false, err
		}
	}
	if user != nil {
		err = os.Chown(dir, int(user.Uid), int(user.Gid))
	}
	return dir, temporary, err
}

// reachable reports whether user may enter every parent of dir.
func reachable(dir string, user *syscall.Credential) bool {
	if user == nil {
		return true
	}
	for parent := filepath.Dir(dir); ; parent = filepath.Dir(parent) {
		info, err := os.Stat(parent)
		if err != nil || !mayEnter(info, user) {
			return false
		}
		if parent == filepath.Dir(parent) {
			return true
		}
	}
}

func mayEnter(info fs.FileInfo, user *syscall.Credential) bool {
	if owner, ok := info.Sys().(*syscall.Stat_t); ok {
		switch {
		case owner.Uid == user.Uid:
			return info.Mode().Perm()&0o100 != 0
		case owner.Gid == user.Gid:
			return info.Mode().Perm()&0o010 != 0
		}
	}
	return info.Mode().Perm()&0o001 != 0
}

// IsTemporaryDir reports whether ServerDir has made the directory as a temporary one.
func IsTemporaryDir(dir string) bool {
	return filepath.Dir(dir) == filepath.Clean(os.TempDir()) && strings.HasPrefix(filepath.Base(dir), tempPrefix)
}
