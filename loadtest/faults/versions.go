package main

import (
	"bytes"
	"context"
	"errors"
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
func readVersions(ctx context.Context, st *stack.Stack) (v versions, err error) {
	v = versions{Go: runtime.Version(), System: runtime.GOOS + "/" + runtime.GOARCH, CPUs: runtime.NumCPU()}
	var errs [4]error
	v.Postgres, errs[0] = postgresVersion(ctx, stack.PostgresURL(st.PostgresPrimary()))
	v.Redis, errs[1] = redisVersion(ctx, st.Addr(stack.Redis))
	v.Nginx, errs[2] = nginxVersion(ctx)
	v.Oncepay, errs[3] = commit(ctx)
	if err := errors.Join(errs[:]...); err != nil {
		return v, fmt.Errorf("read versions: %w", err)
	}
	return v, nil
}

func postgresVersion(ctx context.Context, url string) (version string, err error) {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return "", err
	}
	defer func() { _ = conn.Close(ctx) }()
	err = conn.QueryRow(ctx, "SHOW server_version").Scan(&version)
	return number.FindString(version), err
}

func redisVersion(ctx context.Context, addr string) (string, error) {
	client := redis.NewClient(&redis.Options{Addr: addr})
	defer func() { _ = client.Close() }()
	info, err := client.Info(ctx, "server").Result()
	_, version, _ := strings.Cut(info, "redis_version:")
	return number.FindString(version), err
}

func nginxVersion(ctx context.Context) (string, error) {
	path, err := programs.Nginx.Find()
	if err != nil {
		return "", err
	}
	printed, err := exec.CommandContext(ctx, path, "-v").CombinedOutput()
	return number.FindString(string(printed)), err
}

// commit is HEAD's; a tree that is no checkout of git has none.
func commit(ctx context.Context) (string, error) {
	head, err := exec.CommandContext(ctx, "git", "rev-parse", "--short=10", "HEAD").Output()
	if err != nil {
		return "unknown", nil //nolint:nilerr // a release's tarball, say
	}
	changed, err := exec.CommandContext(ctx, "git", "status", "--porcelain").Output()
	if len(bytes.TrimSpace(changed)) > 0 {
		head = append(bytes.TrimSpace(head), '+')
	}
	return string(bytes.TrimSpace(head)), err
}
