package stack

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// programs are ours; both drivers run the same static binaries.
var programs = []string{"oncepay", "pspsim", "stack"}

func (s *Stack) binDir() string { return filepath.Join(s.Dir, "bin") }

func (s *Stack) program(name string) string { return filepath.Join(s.binDir(), name) }

// build compiles our programs for this machine, or for the Docker engine's when goos is linux.
func (s *Stack) build(ctx context.Context, goos string) error {
	t := s.step("build", "")
	if err := os.MkdirAll(s.binDir(), 0o755); err != nil {
		return t.failed(err)
	}
	// -buildvcs=false: a commit that changes nothing in a program must not restart it.
	args := []string{"build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w", "-tags=" + s.BuildTags, "-o", s.binDir() + string(filepath.Separator)}
	for _, name := range programs {
		args = append(args, "./cmd/"+name)
	}
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = s.root
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+goos)
	out, err := cmd.CombinedOutput()
	if errors.Is(err, exec.ErrNotFound) {
		return t.failed(errors.New("the go command is not on PATH"))
	}
	if err != nil {
		return t.failed(fmt.Errorf("go build: %w\n%s", errors.Join(err, ctx.Err()), out))
	}
	t.done(strings.Join(programs, ", "))
	return nil
}

// fileDigest tells one build of a program from another.
func fileDigest(path string) (string, error) {
	file, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer func() { _ = file.Close() }()
	hash := sha256.New()
	if _, err := io.Copy(hash, file); err != nil {
		return "", err
	}
	return hex.EncodeToString(hash.Sum(nil)), nil
}
