package programs

import (
	"os"
	"slices"
	"strings"
)

// version is how most programs show that they work.
var version = []string{"--version"}

// node is what some programs are for.
const node = "for a Kubernetes node"

// The programs. PostgreSQL's file is the server; initdb and pgbench are beside it.
var (
	Compiler = &Program{
		Name: "gcc with the headers of libc", Use: "for the race detector", files: []string{"gcc"},
		probe:    []string{"-E", "-include", "stdlib.h", "-x", "c", os.DevNull}, // the headers are a package of their own
		packages: packages{"gcc libc6-dev", "gcc glibc-devel", "gcc", "gcc musl-dev", "gcc"},
	}
	Git  = &Program{Name: "git", Use: "applies the mutants", files: []string{"git"}, probe: version, packages: same("git")}
	Curl = &Program{Name: "curl", Use: "for scenarios and the tour", files: []string{"curl"}, probe: version, packages: same("curl")}
	JQ   = &Program{Name: "jq", Use: "for scenarios and the tour", files: []string{"jq"}, probe: version, packages: same("jq")}
	// Chromium's files are where chromedp looks.
	Chromium = &Program{
		Name: "Chromium", Use: "for the tests of pages and of the console", probe: version,
		files: []string{
			"chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "headless-shell", "/snap/bin/chromium",
			"/Applications/Google Chrome.app/Contents/MacOS/Google Chrome", "/Applications/Chromium.app/Contents/MacOS/Chromium",
		},
		packages: packages{"chromium", "chromium", "chromium", "chromium", "google-chrome"},
	}
	PostgreSQL = &Program{
		Name: "PostgreSQL", Use: "for the stack and tests", Oldest: 15, probe: version, service: "postgresql",
		files: []string{
			"postgres", "/usr/lib/postgresql/*/bin/postgres", "/usr/pgsql-*/bin/postgres", "/usr/libexec/postgresql*/postgres",
			"/opt/homebrew/opt/postgresql*/bin/postgres", "/usr/local/opt/postgresql*/bin/postgres", "/home/linuxbrew/.linuxbrew/opt/postgresql*/bin/postgres",
		},
		packages: packages{"postgresql", "postgresql-server postgresql-contrib", "postgresql", "postgresql postgresql-contrib", "postgresql@17"},
	}
	// Redis 7 is the first that knows SET … NX GET.
	Redis = &Program{
		Name: "Redis", Use: "for the stack and tests", Oldest: 7, probe: version, service: "redis-server",
		files:    []string{"redis-server", "valkey-server"},
		packages: packages{"redis-server", "redis", "valkey", "redis", "redis"},
	}
	PgBouncer = &Program{
		Name: "PgBouncer", Use: "for tests, and a stack with a pooler", probe: version, service: "pgbouncer",
		files: []string{"pgbouncer", "/usr/sbin/pgbouncer"}, packages: same("pgbouncer"),
	}
	Termtosvg   = simple("termtosvg", "for the recording", packages{"termtosvg", "", "", "", ""})
	Nginx       = &Program{Name: "nginx", Use: "for the stack", files: []string{"nginx"}, probe: []string{"-v"}, service: "nginx", packages: same("nginx")}
	Spin        = &Program{Name: "Spin", Use: "for the model", files: []string{"spin"}, packages: packages{"spin", "", "", "", "spin"}}
	Debootstrap = simple("debootstrap", "for images, and for the bare root of .ci/run", packages{"debootstrap", "debootstrap", "debootstrap", "debootstrap", ""})
	Docker      = simple("docker", "for the compose driver", packages{"docker.io", "docker-cli", "docker", "docker-cli", "docker"})
	// What a Kubernetes node needs beside the programs that are built from Go modules.
	Etcd       = simple("etcd", node, packages{"etcd-server", "etcd", "etcd", "etcd", "etcd"})
	Containerd = simple("containerd", node, packages{"containerd", "containerd", "containerd", "containerd", ""})
	IPTables   = simple("iptables", node, packages{"iptables", "iptables-nft", "iptables", "iptables", ""})
	IPRoute    = simple("ip", node, packages{"iproute2", "iproute", "iproute2", "iproute2", ""})
	OpenSSL    = simple("openssl", node, same("openssl"))
	// NetworkPlugins are in other folders elsewhere.
	NetworkPlugins = &Program{Name: "CNI plugins", Use: node, files: []string{"/usr/lib/cni/bridge"},
		packages: packages{"containernetworking-plugins"}}
	// Compose is a program, or a plugin of docker's.
	Compose = &Program{
		Name: "docker-compose", Use: "for the compose driver",
		files: []string{
			"docker-compose", "/usr/lib*/docker/cli-plugins/docker-compose", "/usr/local/lib*/docker/cli-plugins/docker-compose",
			os.ExpandEnv("$HOME/.docker/cli-plugins/docker-compose"),
		},
		packages: packages{"docker-compose", "docker-compose", "docker-compose", "docker-cli-compose", "docker-compose"},
	}
)

// packages are a program's names for each of managers, separated by spaces; empty: it has none.
type packages [len(managers)]string

func same(name string) packages { return packages{name, name, name, name, name} }

// simple is a program that need not be asked whether it works.
func simple(name, use string, in packages) *Program {
	return &Program{Name: name, Use: use, files: []string{name}, packages: in}
}

// Stack is the name under which Needs knows a stack on the native driver.
const Stack = "stack"

// Pooler is the same for a stack with a pooler.
const Pooler = "pooler"

// needs are what each task runs, and what is no task: a stack on the native driver, the images of
// scripts/airgap-images.sh, and .ci/run.
func needs() map[string][]*Program {
	servers := []*Program{PostgreSQL, Redis, Nginx}
	withPooler := append(slices.Clone(servers), PgBouncer)
	onStack := servers
	if _, err := Docker.Find(); err == nil && os.Getenv("STACK_DRIVER") != "native" {
		onStack = nil // it may choose Docker; otherwise it asks for its servers itself
	}
	c, chromium, curl := []*Program{Compiler}, []*Program{Chromium}, []*Program{Curl, JQ}
	git, docker := []*Program{Git}, []*Program{Docker, Compose}
	ci := slices.Concat(c, git, curl, chromium, withPooler, []*Program{Spin, Debootstrap})
	if _, err := os.Stat("/var/run/docker.sock"); err == nil {
		ci = append(ci, docker...)
	}
	all := map[string][]*Program{}
	for tasks, programs := range map[string][]*Program{
		Stack:                      servers,
		Pooler:                     {PgBouncer},
		"generate lint fmt":        c,
		"generate:check test:fuzz": slices.Concat(c, git),
		"test:quick test:unit":     slices.Concat(c, git, chromium),
		"release:check":            slices.Concat(c, git, curl),
		"test:all":                 slices.Concat(c, git, curl, chromium, withPooler),
		"test:integration":         slices.Concat(c, withPooler),
		"test:security test:greed": slices.Concat(c, servers),
		"test:console console:pictures dashboard": slices.Concat(c, chromium, servers),
		"up test:stress test:stress:all":          slices.Concat(c, onStack),
		"test:scenarios test:tour":                slices.Concat(c, curl, onStack),
		"recording":                               slices.Concat(c, curl, onStack, []*Program{Termtosvg}),
		"test:faults":                             slices.Concat(c, git, withPooler),
		"test:upgrade test:mutants bench":         slices.Concat(c, git, servers),
		"test:others":                             slices.Concat(c, git, curl, servers),
		"test:compose":                            slices.Concat(c, curl, docker),
		"model":                                   slices.Concat(c, []*Program{Spin}),
		"image":                                   {Docker},
		"airgap-images":                           {Debootstrap, Docker},
		"kubernetes:try":                          slices.Concat(curl, []*Program{Debootstrap, Docker, Etcd, Containerd, NetworkPlugins, IPTables, IPRoute, OpenSSL}),
		"ci":                                      ci,
	} {
		for task := range strings.FieldsSeq(tasks) {
			all[task] = programs
		}
	}
	return all
}

// Needs are the programs that tasks run; what is no task needs none.
func Needs(tasks ...string) (programs []*Program) {
	known := needs()
	for _, task := range tasks {
		for _, p := range known[task] {
			if !slices.Contains(programs, p) {
				programs = append(programs, p)
			}
		}
	}
	return programs
}
