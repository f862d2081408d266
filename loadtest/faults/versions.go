package main

import (
	"context"
	"fmt"
	"os/exec"
	"regexp"
	"runtime"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/redis/go-redis/v9"

	"github.com/oncepay/oncepay/internal/programs"
	"github.com/oncepay/oncepay/internal/stack"
)

// versions are of everything that a result depends on.
type versions struct {
	Oncepay  string `json:"oncepay"` // the commit; + when files differ from it
	Go       string `json:"go"`
	Postgres string `json:"postgres"`
	Redis    string `json:"redis"`
	Nginx    string `json:"nginx"`
	System   string `json:"system"`
	CPUs     int    `json:"cpus"`
}

func (v versions) String() string {
	return fmt.Sprintf("oncepay %s, %s, PostgreSQL %s, Redis %s, nginx %s, %s, %d CPUs", v.Oncepay, v.Go, v.Postgres, v.Redis, v.Nginx, v.System, v.CPUs)
}

var number = regexp.MustCompile(`\d+(\.\d+)+`)

// readVersions asks the stack that is up, and the programs.
func readVersions(ctx context.Context, st *stack.Stack) (versions, error) {
	v := versions{Oncepay: commit(ctx), Go: runtime.Version(), System: runtime.GOOS + "/" + runtime.GOARCH, CPUs: runtime.NumCPU()}
	conn, err := pgx.Connect(ctx, stack.PostgresURL(st.PostgresPrimary()))
	if err != nil {
		return v, fmt.Errorf("read PostgreSQL's version: %w", err)
	}
	defer func() { _ = conn.Close(ctx) }()
	v.Postgres = number.FindString(conn.PgConn().ParameterStatus("server_version"))
	client := redis.NewClient(&redis.Options{Addr: st.Addr(stack.Redis)})
	defer func() { _ = client.Close() }()
	info, err := client.Info(ctx, "server").Result()
	if err != nil {
		return v, fmt.Errorf("read Redis's version: %w", err)
	}
	_, info, _ = strings.Cut(info, "redis_version:")
	v.Redis = number.FindString(info)
	nginx, err := programs.Nginx.Find()
	if err != nil {
		return v, err
	}
	printed, err := exec.CommandContext(ctx, nginx, "-v").CombinedOutput()
	v.Nginx = number.FindString(string(printed))
	return v, err
}

// commit is HEAD's; a tree that is no checkout of git has none.
func commit(ctx context.Context) string {
	head, err := exec.CommandContext(ctx, "git", "rev-parse", "--short=10", "HEAD").Output()
	if err != nil {
		return "unknown" // a release's tarball, say
	}
	name := strings.TrimSpace(string(head))
	if changed, err := exec.CommandContext(ctx, "git", "status", "--porcelain").Output(); err != nil || len(changed) > 0 {
		name += "+"
	}
	return name
}
