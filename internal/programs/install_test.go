package programs

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// bench is a machine that has only fakes, sh and coreutils, and is root's.
type bench struct {
	host
	dir string
	out bytes.Buffer
}

// newBench has an apt-get that notes its calls and then runs the script.
func newBench(t *testing.T, script string) *bench {
	t.Helper()
	b := &bench{dir: t.TempDir()}
	b.host = host{dirs: []string{b.dir, "/usr/bin", "/bin"}, isRoot: true, policy: filepath.Join(b.dir, "policy-rc.d")}
	b.apt(t, script)
	place(t, b.dir, "systemctl", `echo "$@" >>`+b.dir+"/systemctl-calls; exit 1") // in a container
	return b
}

func (b *bench) apt(t *testing.T, script string) {
	t.Helper()
	place(t, b.dir, "apt-get", `echo "$@" >>`+b.dir+"/calls\n"+script)
}

func (b *bench) ensure(t *testing.T, noInstall bool, needed ...*Program) error {
	t.Helper()
	return b.host.ensure(t.Context(), &b.out, noInstall, needed)
}

// calls are what a fake was called with.
func (b *bench) calls(t *testing.T, file string) string {
	t.Helper()
	noted, err := os.ReadFile(filepath.Join(b.dir, file))
	if !errors.Is(err, os.ErrNotExist) {
		require.NoError(t, err)
	}
	return string(noted)
}

func wanted(name string) *Program {
	return &Program{Name: name, Use: "for the test", files: []string{name + "-of-a-test"}, packages: same(name + "-package"), service: name + "-service"}
}

func TestEnsure_InstallsWhatIsMissingAndNothingElse(t *testing.T) {
	t.Parallel()
	one, two, there := wanted("one"), wanted("two"), wanted("there")
	b := newBench(t, "")
	place(t, b.dir, "there-of-a-test", "")
	require.NoError(t, b.ensure(t, false, there))
	require.Empty(t, b.out.String())
	require.Empty(t, b.calls(t, "calls"))

	b.apt(t, "[ $DEBIAN_FRONTEND = noninteractive ] || exit 3\ncase $* in *install*) echo Unpacking …; cp $0 "+b.dir+"/one-of-a-test; cp $0 "+b.dir+"/two-of-a-test; esac")
	require.NoError(t, b.ensure(t, false, one, there, two))
	require.Equal(t, "update\ninstall -y --no-install-recommends one-package two-package\n", b.calls(t, "calls"))
	require.Contains(t, b.out.String(), "  one                            for the test\n  two ")
	require.Contains(t, b.out.String(), "Unpacking …", "so that the user sees it at work")
	require.NotContains(t, b.out.String(), "there")
}

func TestEnsure_StartsNoServiceOfAPackage(t *testing.T) {
	t.Parallel()
	b, one := newBench(t, ""), wanted("one")
	install := "case $* in *install*) " + b.policy + "; echo $? >" + b.dir + "/policy; "
	b.apt(t, install+"exit 100; esac")
	require.Error(t, b.ensure(t, false, one))
	require.Equal(t, "101\n", b.calls(t, "policy"), "invoke-rc.d: forbidden")
	require.NoFileExists(t, b.policy, "services may start again")
	require.Empty(t, b.calls(t, "systemctl-calls"))

	b.apt(t, install+"cp $0 "+b.dir+"/one-of-a-test; esac")
	require.NoError(t, b.ensure(t, false, one))
	require.Equal(t, "disable one-service\n", b.calls(t, "systemctl-calls"))

	place(t, b.dir, "policy-rc.d", "exit 7")
	b.apt(t, install+"cp $0 "+b.dir+"/two-of-a-test; esac")
	require.NoError(t, b.ensure(t, false, wanted("two")))
	require.Equal(t, "7\n", b.calls(t, "policy"), "the machine's own one")
	require.FileExists(t, b.policy)
}

func TestEnsure_RefusesBeforeItChangesAnything(t *testing.T) {
	t.Parallel()
	const paste = "install them with:\n  apt-get update && apt-get install -y --no-install-recommends one-package"
	for name, c := range map[string]struct {
		noInstall bool
		prepare   func(t *testing.T, b *bench, one *Program)
		reason    string
		paste     string
	}{
		"asked not to": {true, func(*testing.T, *bench, *Program) {}, "one is not installed", paste},
		"too old": {false, func(t *testing.T, b *bench, one *Program) {
			one.Oldest, one.probe = 7, version
			place(t, b.dir, "one-of-a-test", "echo v6")
		}, "one-of-a-test is version 6, which is too old", paste},
		"no package": {false, func(_ *testing.T, _ *bench, one *Program) { one.packages = packages{} }, "apt-get has no package of one;", "# it has no one"},
		"no right": {false, func(t *testing.T, b *bench, _ *Program) {
			b.isRoot = false
			place(t, b.dir, "sudo", "echo a password is required; exit 1")
		}, "apt-get has failed (exit status 1)", strings.ReplaceAll(paste, "apt-get", "sudo apt-get")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, one := newBench(t, ""), wanted("one")
			c.prepare(t, b, one)
			err := b.ensure(t, c.noInstall, one)
			require.ErrorContains(t, err, c.reason)
			require.ErrorContains(t, err, c.paste)
			require.Contains(t, b.out.String(), "missing on this machine:\n  one ")
			require.Equal(t, name == "no right", strings.Contains(b.out.String(), "a password is required"))
			require.Empty(t, b.calls(t, "calls"))
		})
	}
}

func TestEnsure_ShowsWhyAnInstallationFailed(t *testing.T) {
	t.Parallel()
	b := newBench(t, "echo E: Could not get lock >&2; exit 100")
	require.EqualError(t, b.ensure(t, false, wanted("one")), "apt-get has failed (exit status 100); install them with:\n"+
		"  apt-get update && apt-get install -y --no-install-recommends one-package")
	require.Contains(t, b.out.String(), "E: Could not get lock")
	require.Equal(t, "update\n", b.calls(t, "calls"), "what fails ends the installation")
}

func TestEnsure_LooksAtWhatWasInstalled(t *testing.T) {
	t.Parallel()
	one := wanted("one")
	b := newBench(t, "")
	require.ErrorContains(t, b.ensure(t, false, one), "one is not installed")

	one.Oldest, one.probe = 7, version
	b.apt(t, `printf '#!/bin/sh\necho v6\n' >`+b.dir+"/one-of-a-test; chmod +x "+b.dir+"/one-of-a-test")
	require.ErrorContains(t, b.ensure(t, false, one), "one 7 or later is needed, and ")
}

func TestManagers_EachHasACommandToPaste(t *testing.T) {
	t.Parallel()
	h, out := host{}, bytes.Buffer{}
	require.ErrorContains(t, h.ensure(t.Context(), &out, false, []*Program{Compiler, Redis, Spin}), `Spin is not installed; install them with:
  sudo apt-get update && sudo apt-get install -y --no-install-recommends gcc libc6-dev redis-server spin
  sudo dnf install -y gcc glibc-devel redis   # it has no Spin
  sudo pacman -S --needed --noconfirm gcc valkey   # it has no Spin
  sudo apk add --no-cache gcc musl-dev redis   # it has no Spin
  brew install gcc redis spin`)
}

// TestEnsure_IsNotInterruptedWhileItInstalls: packages that are half unpacked would stay so.
func TestEnsure_IsNotInterruptedWhileItInstalls(t *testing.T) {
	t.Parallel()
	b, one := newBench(t, ""), wanted("one")
	ctx, interrupt := context.WithCancel(t.Context())
	b.apt(t, "case $* in *install*) echo begun >"+b.dir+"/begun; read line <"+b.dir+"/go; cp $0 "+b.dir+"/one-of-a-test; esac")
	require.NoError(t, errors.Join(syscall.Mkfifo(b.dir+"/begun", 0o600), syscall.Mkfifo(b.dir+"/go", 0o600)))
	go func() {
		_, _ = os.ReadFile(b.dir + "/begun")
		interrupt()
		_ = os.WriteFile(b.dir+"/go", []byte("on\n"), 0o600)
	}()
	require.ErrorIs(t, b.host.ensure(ctx, &b.out, false, []*Program{one}), context.Canceled)
	require.FileExists(t, b.dir+"/one-of-a-test", "it was installed to its end")
	require.Contains(t, b.out.String(), "installing, to the end even if interrupted: ")
}
