package programs

import (
	"os"
	"slices"
)

// version is how most programs show that they work.
var version = []string{"--version"}

// node is what some programs are for.
const node = "for a Kubernetes node"

// The programs. PostgreSQL's file is the server; initdb and pgbench are beside it.
var (
	Compiler = &Program{
		Name: "gcc with the headers of libc", Use: "for the race detector", files: []string{"gcc"}, megabytes: 250,
		probe:    []string{"-E", "-include", "stdlib.h", "-x", "c", os.DevNull}, // the headers are a package of their own
		packages: packages{"gcc libc6-dev", "gcc glibc-devel", "gcc", "gcc musl-dev", "gcc"},
	}
	Git  = &Program{Name: "git", Use: "applies the mutants", files: []string{"git"}, probe: version, megabytes: 150, packages: same("git")}
	Curl = &Program{Name: "curl", Use: "for scenarios and the tour", files: []string{"curl"}, probe: version, megabytes: 5, packages: same("curl")}
	JQ   = &Program{Name: "jq", Use: "for scenarios and the tour", files: []string{"jq"}, probe: version, megabytes: 5, packages: same("jq")}
	// Chromium's files are where chromedp looks.
	Chromium = &Program{
		Name: "Chromium", Use: "for the tests of pages and of the console", probe: version, megabytes: 950,
		files: []string{
			"chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "headless-shell", "/snap/bin/chromium",
			"/Applications/Google Chrome.app/Contents/MacOS/Google Chrome", "/Applications/Chromium.app/Contents/MacOS/Chromium",
		},
		packages: packages{"chromium", "chromium", "chromium", "chromium", "google-chrome"},
	}
	PostgreSQL = &Program{
		Name: "PostgreSQL", Use: "for the stack and tests", Oldest: 15, megabytes: 350,
		files: []string{
			"postgres", "/usr/lib/postgresql/*/bin/postgres", "/usr/pgsql-*/bin/postgres", "/usr/libexec/postgresql*/postgres",
			"/opt/homebrew/opt/postgresql*/bin/postgres", "/usr/local/opt/postgresql*/bin/postgres", "/home/linuxbrew/.linuxbrew/opt/postgresql*/bin/postgres",
		},
		packages: packages{"postgresql", "postgresql-server postgresql-contrib", "postgresql", "postgresql postgresql-contrib", "postgresql@17"},
	}
	// Redis 7 is the first that knows SET … NX GET.
	Redis = &Program{
		Name: "Redis", Use: "for the stack and tests", Oldest: 7, files: []string{"redis-server", "valkey-server"}, megabytes: 10,
		packages: packages{"redis-server", "redis", "valkey", "redis", "redis"},
	}
	Nginx       = &Program{Name: "nginx", Use: "for the stack", files: []string{"nginx"}, probe: []string{"-v"}, megabytes: 10, packages: same("nginx")}
	Spin        = &Program{Name: "Spin", Use: "for the model", files: []string{"spin"}, megabytes: 5, packages: packages{apt: "spin", brew: "spin"}}
	Debootstrap = simple("debootstrap", "for images, and for the bare root of .ci/run", 5, packages{"debootstrap", "debootstrap", "debootstrap", "debootstrap", ""})
	Docker      = simple("docker", "for the compose driver", 350, packages{"docker.io", "docker-cli", "docker", "docker-cli", "docker"})
	// What a Kubernetes node needs beside the programs that are built from Go modules.
	Etcd       = simple("etcd", node, 50, packages{"etcd-server", "etcd", "etcd", "etcd", "etcd"})
	Containerd = simple("containerd", node, 150, packages{"containerd", "containerd", "containerd", "containerd", ""})
	IPTables   = simple("iptables", node, 10, packages{"iptables", "iptables-nft", "iptables", "iptables", ""})
	IPRoute    = simple("ip", node, 5, packages{"iproute2", "iproute", "iproute2", "iproute2", ""})
	OpenSSL    = simple("openssl", node, 5, same("openssl"))
	// NetworkPlugins are in other folders elsewhere.
	NetworkPlugins = &Program{Name: "CNI plugins", Use: node, files: []string{"/usr/lib/cni/bridge"}, megabytes: 50,
		packages: packages{apt: "containernetworking-plugins"}}
	// Compose is a program, or a plugin of docker's.
	Compose = &Program{
		Name: "docker-compose", Use: "for the compose driver", megabytes: 50,
		files: []string{
			"docker-compose", "/usr/lib*/docker/cli-plugins/docker-compose", "/usr/local/lib*/docker/cli-plugins/docker-compose",
			os.ExpandEnv("$HOME/.docker/cli-plugins/docker-compose"),
		},
		packages: packages{"docker-compose", "docker-compose", "docker-compose", "docker-cli-compose", "docker-compose"},
	}
)

func same(name string) packages { return packages{name, name, name, name, name} }

// simple is a program that need not be asked whether it works.
func simple(name, use string, megabytes int, in packages) *Program {
	return &Program{Name: name, Use: use, files: []string{name}, megabytes: megabytes, packages: in}
}

// Stack is the name under which Needs knows a stack on the native driver.
const Stack = "stack"

// needs are what each task runs, and what is no task: a stack on the native driver, the images of
// scripts/airgap-images.sh, and .ci/run.
func needs() map[string][]*Program {
	servers := []*Program{PostgreSQL, Redis, Nginx}
	onStack := servers
	if _, err := Docker.Find(); err == nil && os.Getenv("STACK_DRIVER") != "native" {
		onStack = nil // it may choose Docker; otherwise it asks for its servers itself
	}
	c, chromium, curl := []*Program{Compiler}, []*Program{Chromium}, []*Program{Curl, JQ}
	git, docker := []*Program{Git}, []*Program{Docker, Compose}
	campaign := slices.Concat(c, git, servers)
	all := map[string][]*Program{
		Stack:              servers,
		"up":               slices.Concat(c, onStack),
		"generate":         c,
		"generate:check":   slices.Concat(c, git),
		"lint":             c,
		"fmt":              c,
		"image":            {Docker},
		"test:all":         slices.Concat(c, git, curl, chromium, servers),
		"test:quick":       slices.Concat(c, git, chromium),
		"test:unit":        slices.Concat(c, git, chromium),
		"test:integration": slices.Concat(c, servers),
		"test:scenarios":   slices.Concat(c, curl, onStack),
		"test:tour":        slices.Concat(c, curl, onStack),
		"test:console":     slices.Concat(c, chromium, servers),
		"test:security":    slices.Concat(c, servers),
		"test:fuzz":        slices.Concat(c, git),
		"release:check":    slices.Concat(c, git, curl),
		"test:greed":       slices.Concat(c, servers),
		"test:stress":      slices.Concat(c, onStack),
		"test:compose":     slices.Concat(c, curl, docker),
		"test:stress:all":  slices.Concat(c, onStack),
		"test:faults":      campaign,
		"test:upgrade":     campaign,
		"test:others":      campaign,
		"test:mutants":     campaign,
		"bench":            campaign,
		"model":            slices.Concat(c, []*Program{Spin}),
		"dashboard":        slices.Concat(c, chromium, servers),
		"console:pictures": slices.Concat(c, chromium, servers),
		"recording":        slices.Concat(c, curl, onStack),
		"kubernetes:try":   slices.Concat(curl, []*Program{Debootstrap, Docker, Etcd, Containerd, NetworkPlugins, IPTables, IPRoute, OpenSSL}),
		"airgap-images":    {Debootstrap, Docker},
	}
	all["ci"] = slices.Concat(all["test:all"], []*Program{Spin, Debootstrap})
	if _, err := os.Stat("/var/run/docker.sock"); err == nil {
		all["ci"] = append(all["ci"], docker...)
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
