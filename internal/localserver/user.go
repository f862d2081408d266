package localserver

import (
	"errors"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// unprivileged returns the user that servers run as when we are root, because PostgreSQL refuses to
// be root; nil means that we are another user already.
func unprivileged() (*syscall.Credential, error) {
	if os.Geteuid() != 0 {
		return nil, nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		account, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, _ := strconv.ParseUint(account.Uid, 10, 32)
		gid, err := strconv.ParseUint(account.Gid, 10, 32)
		return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, err
	}
	return nil, errors.New("running as root, and there is neither a user postgres nor a user nobody to run PostgreSQL as")
}

// tempPrefix begins the name of every temporary directory that serverDir makes.
const tempPrefix = "oncepay-"

// serverDir makes the directory that a server runs in, owned by user. It is a temporary one when
// dir is empty or when that user could not enter it.
func serverDir(dir, name string, user *syscall.Credential) (_ string, err error) {
	if dir != "" {
		if dir, err = filepath.Abs(dir); err != nil {
			return "", err
		}
		if err := errors.Join(os.MkdirAll(dir, 0o755), own(dir, user)); err != nil {
			return "", err
		}
		if reachable(dir, user) {
			return dir, nil
		}
	}
	if dir, err = os.MkdirTemp("", tempPrefix+name+"-"); err != nil {
		return "", err
	}
	return dir, own(dir, user)
}

// own gives a file or directory to a user; nil: it stays ours.
func own(path string, user *syscall.Credential) error {
	if user == nil {
		return nil
	}
	return os.Chown(path, int(user.Uid), int(user.Gid))
}

// reachable reports whether user may enter dir, by a process of the user's that starts in it.
func reachable(dir string, user *syscall.Credential) bool {
	cmd := exec.Command("true") //nolint:noctx // it ends at once
	cmd.Dir, cmd.SysProcAttr = dir, &syscall.SysProcAttr{Credential: user}
	return user == nil || cmd.Run() == nil
}

// IsTemporaryDir reports whether ServerDir has made the directory as a temporary one.
func IsTemporaryDir(dir string) bool {
	return filepath.Dir(dir) == filepath.Clean(os.TempDir()) && strings.HasPrefix(filepath.Base(dir), tempPrefix)
}
