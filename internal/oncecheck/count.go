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
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

// setCommands sets what counts effects, and what disturbs.
func (s *settings) setCommands() error {
	ways := slices.DeleteFunc([]string{s.count, s.countCommand, s.countSQL}, func(way string) bool { return way == "" })
	switch {
	case len(ways) > 1:
		return errors.New("--count, --count-command and --count-sql exclude each other")
	case s.count != "":
		address, path, _ := strings.Cut(s.count, "#")
		u, err := url.Parse(address)
		if err != nil || u.Host == "" {
			return fmt.Errorf("--count has to be like http://127.0.0.1:8080/v1/orders#items, and is %q", s.count)
		}
		header := s.cfg.Request.Header
		if request, err := url.Parse(s.cfg.Request.URL); err != nil || u.Hostname() != request.Hostname() { // it must not learn credentials
			header = http.Header{}
		}
		s.cfg.Count = countByGet(address, path, header)
	case s.countCommand != "":
		s.cfg.Count = s.countByCommand
	case s.countSQL != "" && s.database == "":
		return errors.New("--count-sql needs --database, or DATABASE_URL")
	case s.countSQL != "":
		s.cfg.Count = s.countBySQL
	}
	if s.between != "" {
		s.cfg.Between = func(ctx context.Context) error {
			_, err := s.output(ctx, "--between", s.between)
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

// valueAt follows a path such as data.total, $.items or pages.0.items. Nothing is within null.
func valueAt(value any, path string) (any, error) {
	for step := range strings.SplitSeq(strings.TrimPrefix(path, "$"), ".") {
		if step == "" {
			continue
		}
		members, isObject := value.(map[string]any)
		list, isList := value.([]any)
		member, found := members[step]
		i, err := strconv.Atoi(step)
		switch {
		case value == nil:
		case isObject && found:
			value = member
		case isList && err == nil && i >= 0 && i < len(list):
			value = list[i]
		default:
			return nil, fmt.Errorf("the path %q leads to no member %q", path, step)
		}
	}
	return value, nil
}

// numberAt is the number, or the length of the list, at a path.
func numberAt(value any, path string) (int64, error) {
	value, err := valueAt(value, path)
	if err != nil {
		return 0, fmt.Errorf("count: %w", err)
	}
	switch at := value.(type) {
	case nil: // how Go writes an empty list
		return 0, nil
	case []any:
		return int64(len(at)), nil
	case json.Number:
		return at.Int64()
	}
	return 0, fmt.Errorf("count: there is neither a number nor a list at the path %q", path)
}

func (s *settings) countByCommand(ctx context.Context) (int64, error) {
	text, err := s.output(ctx, "--count-command", s.countCommand)
	if err != nil {
		return 0, err
	}
	n, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%s has to print a number, and printed %.80q", s.countCommand, text)
	}
	return n, nil
}

// output runs a command of the user's by the shell, for as long as a request may take.
func (s *settings) output(ctx context.Context, flag, command string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, s.cfg.Attempt)
	defer cancel()
	var errOut bytes.Buffer
	cmd := exec.CommandContext(ctx, "sh", "-c", command) //nolint:gosec // the user's own command
	cmd.Stderr, cmd.Env, cmd.WaitDelay = &errOut, os.Environ(), time.Second
	text, err := cmd.Output()
	if ctx.Err() != nil {
		return "", fmt.Errorf("%s %q did not end within %s (--attempt)", flag, command, s.cfg.Attempt)
	}
	if err != nil {
		return "", fmt.Errorf("%s %q failed: %s", flag, command, oneLine(err.Error()+" "+errOut.String()))
	}
	return string(text), nil
}

func (s *settings) countBySQL(ctx context.Context) (n int64, err error) {
	conn, err := pgx.Connect(ctx, s.database)
	if err != nil {
		return 0, fmt.Errorf("connect to count: %s", oneLine(err.Error()))
	}
	defer func() { _ = conn.Close(ctx) }()
	err = pgx.BeginTxFunc(ctx, conn, pgx.TxOptions{AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error {
		return tx.QueryRow(ctx, s.countSQL).Scan(&n)
	})
	if err != nil {
		return 0, fmt.Errorf("count by %q: %s", s.countSQL, oneLine(err.Error()))
	}
	return n, nil
}
