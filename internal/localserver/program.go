package localserver

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
)

// ErrNotInstalled says that a program is absent or too old; the text names what is needed and what
// was found.
var ErrNotInstalled = errors.New("not installed")

// FindNginx returns the path of nginx on this machine, or an ErrNotInstalled. Any version of the
// last years will do.
func FindNginx() (string, error) {
	path, err := exec.LookPath("nginx")
	if err != nil { // Debian's is in /usr/sbin, which is not on everybody's PATH
		path, err = exec.LookPath("/usr/sbin/nginx")
	}
	if err != nil {
		return "", fmt.Errorf("nginx: %w", ErrNotInstalled)
	}
	return path, nil
}

// printedVersion returns what a program prints for --version, or "".
func printedVersion(path string) string {
	ctx, cancel := context.WithTimeout(context.Background(), ProbeTimeout)
	defer cancel()
	out, _ := exec.CommandContext(ctx, path, "--version").Output()
	return string(out)
}

// IsFile reports whether there is a regular file at a path.
func IsFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}
