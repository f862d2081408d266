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
	"time"

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
	b.host = host{dirs: []string{b.dir, "/usr/bin", "/bin"}, isRoot: true, policy: filepath.Join(b.dir, "policy-rc.d"), showEvery: time.Minute}
	b.apt(t, script)
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

// calls are the steps that apt-get was called with.
func (b *bench) calls(t *testing.T) (steps []string) {
	t.Helper()
	noted, _ := os.ReadFile(filepath.Join(b.dir, "calls"))
	for line := range strings.Lines(string(noted)) {
		for _, step := range []string{"check", "update", "install -y"} {
			if i := strings.Index(line, step); i >= 0 {
				steps = append(steps, strings.TrimSpace(line[i:]))
			}
		}
	}
	return steps
}

func wanted(name string) *Program {
	return &Program{Name: name, Use: "for the test", files: []string{name + "-of-a-test"}, packages: same(name + "-package")}
}

func TestEnsure_InstallsWhatIsMissingAndNothingElse(t *testing.T) {
	t.Parallel()
	one, two, there := wanted("one"), wanted("two"), wanted("there")
	b := newBench(t, "")
	place(t, b.dir, "there-of-a-test", "")
	require.NoError(t, b.ensure(t, false, there))
	require.Empty(t, b.out.String())
	require.Empty(t, b.calls(t))

	install := "case $* in *update*) [ ! -e " + b.policy + " ] || exit 4;; *install*) cp $0 " + b.dir + "/one-of-a-test; cp $0 " + b.dir + "/two-of-a-test; cat " + b.policy + " >&2; esac"
	b.apt(t, "[ $DEBIAN_FRONTEND = noninteractive ] || exit 3\n"+install)
	require.NoError(t, b.ensure(t, false, one, there, two))
	require.Equal(t, []string{"check", "update", "install -y --no-install-recommends one-package two-package"}, b.calls(t))
	require.Contains(t, b.out.String(), "  one                            for the test\n  two ")
	require.NotContains(t, b.out.String(), "there")
	require.NoFileExists(t, b.policy, "services may start again")
}

func TestEnsure_StartsNoServiceOfAPackage(t *testing.T) {
	t.Parallel()
	b := newBench(t, "")
	b.apt(t, "case $* in *install*) "+b.policy+"; echo $? >"+b.dir+"/policy; exit 100; esac")
	require.Error(t, b.ensure(t, false, wanted("one")))
	status, err := os.ReadFile(filepath.Join(b.dir, "policy"))
	require.NoError(t, err)
	require.Equal(t, "101\n", string(status), "invoke-rc.d: forbidden")
	require.NoFileExists(t, b.policy)
}

func TestEnsure_RefusesBeforeItChangesAnything(t *testing.T) {
	t.Parallel()
	const paste = "\n  apt-get update && apt-get install -y --no-install-recommends one-package"
	for name, c := range map[string]struct {
		noInstall bool
		prepare   func(t *testing.T, b *bench, one *Program)
		reason    string
		sudo      bool
	}{
		"asked not to": {true, func(*testing.T, *bench, *Program) {}, "install them with:", false},
		"too old": {false, func(t *testing.T, b *bench, one *Program) {
			one.Oldest = 7
			place(t, b.dir, "one-of-a-test", "echo v6")
		}, "one-of-a-test is version 6; update it", false},
		"disk full":  {false, func(_ *testing.T, _ *bench, one *Program) { one.megabytes = 1 << 40 }, "the disk is full: /usr has ", false},
		"no package": {false, func(_ *testing.T, _ *bench, one *Program) { one.packages.apt = "" }, "apt-get has no package of one;", false},
		"no right": {false, func(t *testing.T, b *bench, _ *Program) {
			b.isRoot = false
			place(t, b.dir, "sudo", "exit 1")
		}, "needs root, or sudo without a password", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, one := newBench(t, ""), wanted("one")
			c.prepare(t, b, one)
			err := b.ensure(t, c.noInstall, one)
			require.ErrorContains(t, err, c.reason)
			require.Contains(t, b.out.String(), "missing on this machine:\n  one ")
			require.Empty(t, b.calls(t))
			if c.sudo {
				require.ErrorContains(t, err, strings.ReplaceAll(paste, "apt-get", "sudo apt-get"))
			} else if one.packages.apt != "" {
				require.ErrorContains(t, err, paste)
			}
		})
	}
}

func TestEnsure_SaysInOneSentenceWhyAnInstallationFailed(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ printed, reason string }{
		{"E: Could not get lock /var/lib/dpkg/lock-frontend. It is held by process 94 (apt)", "the package manager is busy"},
		{"Waiting for process with pid 94 to finish.", "the package manager is busy"},
		{"error: failed to init transaction (unable to lock database)", "the package manager is busy"},
		{"E: Failed to fetch http://a.test/p.deb  Could not connect to a.test:80", "no package could be fetched"},
		{"Err:1 http://a.test trixie InRelease\n  Temporary failure resolving 'a.test'\nE: Unable to locate package curl", "no package could be fetched"},
		{"E: You don't have enough free space in /var/cache/apt/archives/.", "the disk is full"},
		{"dpkg: error processing archive a.deb: cannot copy: No space left on device", "the disk is full"},
		{"E: dpkg was interrupted, you must manually run 'dpkg --configure -a'", "a package could not be installed"},
	} {
		b := newBench(t, `echo "`+c.printed+`" >&2; exit 100`)
		err := b.ensure(t, false, wanted("one"))
		require.ErrorContains(t, err, c.reason)
		require.NotContains(t, err.Error(), "\n")
		require.Equal(t, []string{"check"}, b.calls(t), "what fails ends the installation")
	}
	b := newBench(t, "echo something else; exit 100")
	require.EqualError(t, b.ensure(t, false, wanted("one")), "apt-get: exit status 100\nsomething else")
}

func TestEnsure_GivesUpWhenNoMirrorAnswers(t *testing.T) {
	t.Parallel()
	b := newBench(t, `case $* in *update*) printf "Ign:1 http://a.test x\nErr:1 http://a.test x\n  Temporary failure resolving\nReading\n"; esac`)
	require.ErrorContains(t, b.ensure(t, false, wanted("one")), "no package could be fetched; is there a network? (apt-get: ")
	require.Equal(t, []string{"check", "update"}, b.calls(t))

	b = newBench(t, `case $* in *update*) printf "Hit:1 http://b.test x\nErr:2 http://a.test x\n"; esac; cp $0 $(dirname $0)/one-of-a-test`)
	require.NoError(t, b.ensure(t, false, wanted("one")), "one mirror is enough")
}

func TestEnsure_InstallsNoPackageThatIsTooOld(t *testing.T) {
	t.Parallel()
	one := wanted("one")
	one.Oldest = 15
	b := newBench(t, "")
	place(t, b.dir, "apt-cache", `echo "$2:"; echo "  Installed: (none)"; echo "  Candidate: 1:13+225"`)
	require.EqualError(t, b.ensure(t, false, one), "the packages of this system are too old: one 15 or later is needed, and apt-get has version 13")
	require.Equal(t, []string{"check", "update"}, b.calls(t))

	place(t, b.dir, "apt-cache", `echo "  Candidate: 1:15+248"`)
	b.apt(t, `printf '#!/bin/sh\necho v15\n' >`+b.dir+"/one-of-a-test; chmod +x "+b.dir+"/one-of-a-test")
	require.NoError(t, b.ensure(t, false, one))
}

func TestEnsure_LooksAtWhatWasInstalled(t *testing.T) {
	t.Parallel()
	one := wanted("one")
	b := newBench(t, "")
	require.EqualError(t, b.ensure(t, false, one), "apt-get has installed its package, and there is no one")

	one.Oldest = 7
	b.apt(t, `printf '#!/bin/sh\necho v6\n' >`+b.dir+"/one-of-a-test; chmod +x "+b.dir+"/one-of-a-test")
	require.ErrorContains(t, b.ensure(t, false, one), "the packages of this system are too old: one 7 or later is needed, and ")
}

// releasing lets the fake go on when it has shown its progress.
type releasing struct {
	bytes.Buffer
	when, file string
}

func (r *releasing) Write(printed []byte) (int, error) {
	if strings.Contains(string(printed), r.when) {
		_ = os.WriteFile(r.file, nil, 0o644)
	}
	return r.Buffer.Write(printed)
}

func TestEnsure_ShowsItsProgress(t *testing.T) {
	t.Parallel()
	b := newBench(t, "")
	b.showEvery = time.Millisecond
	out := &releasing{when: "Unpacking one ...", file: filepath.Join(b.dir, "one-of-a-test")}
	b.apt(t, "echo Reading; echo Unpacking one ...; for i in $(seq 1000); do [ -e "+out.file+" ] && chmod +x "+out.file+" && exit; sleep 0.02; done")
	require.NoError(t, b.host.ensure(t.Context(), out, false, []*Program{wanted("one")}))
}

func TestManagers_EachHasACommandToPaste(t *testing.T) {
	t.Parallel()
	h := host{}
	require.Equal(t, `
  sudo apt-get update && sudo apt-get install -y --no-install-recommends gcc libc6-dev redis-server spin
  sudo dnf install -y gcc glibc-devel redis   # it has no Spin
  sudo pacman -S --needed --noconfirm gcc valkey   # it has no Spin
  sudo apk add --no-cache gcc musl-dev redis   # it has no Spin
  brew install gcc redis spin`, h.paste([]*Program{Compiler, Redis, Spin}))
	_, err := h.installer(t.Context(), []*Program{Redis}, nil, false)
	require.ErrorContains(t, err, "no package manager")
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
	require.ErrorIs(t, b.host.ensure(ctx, &b.out, false, []*Program{one}), errInterrupted)
	require.FileExists(t, b.dir+"/one-of-a-test", "it was installed to its end")
	require.Contains(t, b.out.String(), "interrupted: what is being installed is installed to its end")
}
