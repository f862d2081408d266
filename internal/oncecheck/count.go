package oncecheck

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
)

// setCommands sets what counts effects, and what disturbs.
func (s *settings) setCommands() error {
	ways := 0
	for _, way := range []string{s.count, s.countCommand, s.countSQL} {
		if way != "" {
			ways++
		}
	}
	switch {
	case ways > 1:
		return errors.New("--count, --count-command and --count-sql exclude each other")
	case s.count != "":
		address, path, _ := strings.Cut(s.count, "#")
		if u, err := url.Parse(address); err != nil || u.Host == "" {
			return fmt.Errorf("--count has to be like http://127.0.0.1:8080/v1/orders#items, and is %q", s.count)
		}
		s.cfg.Count = countByGet(address, path, s.cfg.Request.Header)
	case s.countCommand != "":
		s.cfg.Count = func(ctx context.Context) (int64, error) { return countByCommand(ctx, s.countCommand) }
	case s.countSQL != "" && s.database == "":
		return errors.New("--count-sql needs --database, or DATABASE_URL")
	case s.countSQL != "":
		s.cfg.Count = func(ctx context.Context) (int64, error) { return countBySQL(ctx, s.database, s.countSQL) }
	}
	if s.between != "" {
		s.cfg.Between = func(ctx context.Context) error {
			_, err := output(ctx, s.between)
			return err
		}
	}
	return nil
}

// countByGet gets a URL with the request's headers, and reads the number or the length of the
// list at a path of its JSON.
func countByGet(address, path string, header http.Header) Counter {
	client := &http.Client{Timeout: DefaultAttempt}
	return func(ctx context.Context) (int64, error) {
		q, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
		if err != nil {
			return 0, fmt.Errorf("count: %w", err)
		}
		q.Header = header.Clone()
		q.Header.Del("Content-Type")
		q.Close = true
		answer, err := client.Do(q)
		if err != nil {
			return 0, fmt.Errorf("count: %w", err)
		}
		defer func() { _ = answer.Body.Close() }()
		if answer.StatusCode != http.StatusOK {
			return 0, fmt.Errorf("count: GET %s was answered with %s", address, answer.Status)
		}
		var value any
		decoder := json.NewDecoder(answer.Body)
		decoder.UseNumber()
		if err := decoder.Decode(&value); err != nil {
			return 0, fmt.Errorf("count: GET %s returned no JSON: %w", address, err)
		}
		return numberAt(value, path)
	}
}

// numberAt follows a path such as data.total, $.items or pages.0.items.
func numberAt(value any, path string) (int64, error) {
	for step := range strings.SplitSeq(strings.TrimPrefix(path, "$"), ".") {
		if step == "" {
			continue
		}
		switch at := value.(type) {
		case map[string]any:
			value = at[step]
		case []any:
			i, err := strconv.Atoi(step)
			if err != nil || i < 0 || i >= len(at) {
				return 0, fmt.Errorf("count: the list has no element %q of the path %q", step, path)
			}
			value = at[i]
		}
	}
	switch at := value.(type) {
	case []any:
		return int64(len(at)), nil
	case json.Number:
		return at.Int64()
	}
	return 0, fmt.Errorf("count: there is neither a number nor a list at the path %q", path)
}

func countByCommand(ctx context.Context, command string) (int64, error) {
	text, err := output(ctx, command)
	if err != nil {
		return 0, err
	}
	n, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%s has to print a number, and printed %.80q", command, text)
	}
	return n, nil
}

// output runs a command of the user's by the shell.
func output(ctx context.Context, command string) (string, error) {
	var errOut bytes.Buffer
	cmd := exec.CommandContext(ctx, "sh", "-c", command) //nolint:gosec // the user's own command
	cmd.Stderr, cmd.Env = &errOut, os.Environ()
	text, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s: %w: %.200s", command, err, errOut.String())
	}
	return string(text), nil
}

func countBySQL(ctx context.Context, database, query string) (n int64, err error) {
	conn, err := pgx.Connect(ctx, database)
	if err != nil {
		return 0, fmt.Errorf("connect to count: %w", err)
	}
	defer func() { _ = conn.Close(ctx) }()
	if err := conn.QueryRow(ctx, query).Scan(&n); err != nil {
		return 0, fmt.Errorf("count by %q: %w", query, err)
	}
	return n, nil
}
