package oncecheck

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/tidwall/gjson"
)

// count returns how many effects there are now, by the way that was given.
func (s *settings) count(ctx context.Context) (int64, error) {
	address, path, _ := strings.Cut(s.countURL, "#")
	var text string
	var err error
	switch {
	case s.countURL != "":
		text, err = s.get(ctx, address)
	case s.countCommand != "":
		text, err = s.output(ctx, s.countCommand)
	default:
		text, err = s.query(ctx)
	}
	if err != nil {
		return 0, fmt.Errorf("count: %s", oneLine(err.Error()))
	}
	return numberAt(text, path)
}

// get returns the body of an answer.
func (s *settings) get(ctx context.Context, address string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, s.cfg.Attempt)
	defer cancel()
	r := Request{Method: http.MethodGet, URL: address, Header: http.Header{}}
	if hostname(address) == hostname(s.cfg.Request.URL) { // others must not learn credentials
		r.Header = s.cfg.Request.Header
	}
	var e Exchange
	err := e.over(ctx, r, s.cfg.transport().RoundTrip)
	if err == nil && e.status != http.StatusOK {
		err = fmt.Errorf("GET %s was answered with %s", address, e.told())
	}
	return e.body, err
}

func hostname(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return u.Hostname()
}

// numberAt is the number, or the length of the list, at a path of a JSON text, such as data.total,
// $.items or pages.0.items.
func numberAt(text, path string) (int64, error) {
	within := strings.TrimPrefix(strings.TrimPrefix(path, "$"), ".")
	switch at := gjson.Get(text, cmp.Or(within, "@this")); {
	case !gjson.Valid(text) || !at.Exists():
	case at.Type == gjson.Null: // how Go writes an empty list
		return 0, nil
	case at.IsArray():
		return int64(len(at.Array())), nil
	case at.Type == gjson.Number:
		return at.Int(), nil
	}
	return 0, fmt.Errorf("count: the path %q leads to neither a number nor a list in %q", path, oneLine(text))
}

// query returns the number that a query returns.
func (s *settings) query(ctx context.Context) (number string, err error) {
	conn, err := pgx.Connect(ctx, cmp.Or(s.database, os.Getenv("DATABASE_URL")))
	if err != nil {
		return "", err
	}
	defer func() { _ = conn.Close(ctx) }()
	err = pgx.BeginTxFunc(ctx, conn, pgx.TxOptions{AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error {
		return tx.QueryRow(ctx, s.countQuery, pgx.QueryExecModeSimpleProtocol).Scan(&number)
	})
	return number, err
}

// output runs a command of the user's by the shell, for as long as a request may take.
func (s *settings) output(ctx context.Context, command string) (string, error) {
	late := fmt.Errorf("did not end within %s (--attempt)", s.cfg.Attempt)
	ctx, cancel := context.WithTimeoutCause(ctx, s.cfg.Attempt, late)
	defer cancel()
	var errOut bytes.Buffer
	cmd := exec.CommandContext(ctx, "sh", "-c", command) //nolint:gosec // the user's own command
	cmd.Stderr, cmd.WaitDelay = &errOut, time.Second
	text, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%q failed: %w %s", command, cmp.Or(context.Cause(ctx), err), oneLine(errOut.String()))
	}
	return string(text), nil
}
