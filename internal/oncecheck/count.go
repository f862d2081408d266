package oncecheck

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/tidwall/gjson"
)

// Counter returns how many effects there are now.
type Counter func(context.Context) (int64, error)

// countBy returns the function of a flag that names a way to count effects.
func (s *settings) countBy(counter func(string) Counter) func(string) error {
	return func(text string) error {
		if s.cfg.Count != nil {
			return errors.New("--count, --count-command and --count-sql exclude each other")
		}
		s.cfg.Count = counter(text)
		return nil
	}
}

// counterOfURL gets a URL, and reads the number or the length of the list at a path of its JSON.
func (s *settings) counterOfURL(text string) Counter {
	client := &http.Client{Timeout: DefaultAttempt}
	address, path, _ := strings.Cut(text, "#")
	return func(ctx context.Context) (int64, error) {
		q, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
		if err != nil || q.URL.Host == "" {
			return 0, fmt.Errorf("--count has to be like http://127.0.0.1:8080/v1/orders#items, and is %q", text)
		}
		if u, err := url.Parse(s.cfg.Request.URL); err == nil && u.Hostname() == q.URL.Hostname() { // others must not learn credentials
			q.Header = s.cfg.Request.Header.Clone()
			q.Header.Del("Content-Type")
		}
		q.Close = true
		answer, err := client.Do(q)
		if err != nil {
			return 0, fmt.Errorf("count: %w", err)
		}
		defer func() { _ = answer.Body.Close() }()
		body, err := io.ReadAll(answer.Body)
		switch {
		case err != nil:
			return 0, fmt.Errorf("count: %w", err)
		case answer.StatusCode != http.StatusOK:
			return 0, fmt.Errorf("count: GET %s was answered with %s", address, answer.Status)
		case !gjson.ValidBytes(body):
			return 0, fmt.Errorf("count: GET %s returned no JSON", address)
		}
		return numberAt(string(body), path)
	}
}

// numberAt is the number, or the length of the list, at a path of a JSON text, such as data.total,
// $.items or pages.0.items.
func numberAt(body, path string) (int64, error) {
	within := strings.TrimPrefix(strings.TrimPrefix(path, "$"), ".")
	switch at := gjson.Get(body, cmp.Or(within, "@this")); {
	case !at.Exists():
		return 0, fmt.Errorf("count: the path %q leads to no member", path)
	case at.Type == gjson.Null: // how Go writes an empty list
		return 0, nil
	case at.IsArray():
		return int64(len(at.Array())), nil
	case at.Type == gjson.Number:
		return at.Int(), nil
	}
	return 0, fmt.Errorf("count: there is neither a number nor a list at the path %q", path)
}

func (s *settings) counterOfCommand(command string) Counter {
	return func(ctx context.Context) (int64, error) {
		text, err := s.output(ctx, "--count-command", command)
		if err != nil {
			return 0, err
		}
		n, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
		if err != nil {
			return 0, fmt.Errorf("%s has to print a number, and printed %.80q", command, text)
		}
		return n, nil
	}
}

func (s *settings) counterOfQuery(query string) Counter {
	return func(ctx context.Context) (n int64, err error) {
		database := cmp.Or(s.database, os.Getenv("DATABASE_URL"))
		if database == "" {
			return 0, errors.New("--count-sql needs --database, or DATABASE_URL")
		}
		conn, err := pgx.Connect(ctx, database)
		if err != nil {
			return 0, fmt.Errorf("connect to count: %s", oneLine(err.Error()))
		}
		defer func() { _ = conn.Close(ctx) }()
		err = pgx.BeginTxFunc(ctx, conn, pgx.TxOptions{AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error {
			return tx.QueryRow(ctx, query).Scan(&n)
		})
		if err != nil {
			return 0, fmt.Errorf("count by %q: %s", query, oneLine(err.Error()))
		}
		return n, nil
	}
}

// disturbBy is the function of --between.
func (s *settings) disturbBy(command string) error {
	s.cfg.Between = func(ctx context.Context) error {
		_, err := s.output(ctx, "--between", command)
		return err
	}
	return nil
}

// output runs a command of the user's by the shell, for as long as a request may take.
func (s *settings) output(ctx context.Context, flag, command string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, s.cfg.Attempt)
	defer cancel()
	var errOut bytes.Buffer
	cmd := exec.CommandContext(ctx, "sh", "-c", command) //nolint:gosec // the user's own command
	cmd.Stderr, cmd.WaitDelay = &errOut, time.Second
	text, err := cmd.Output()
	if ctx.Err() != nil {
		return "", fmt.Errorf("%s %q did not end within %s (--attempt)", flag, command, s.cfg.Attempt)
	}
	if err != nil {
		return "", fmt.Errorf("%s %q failed: %s", flag, command, oneLine(err.Error()+" "+errOut.String()))
	}
	return string(text), nil
}
