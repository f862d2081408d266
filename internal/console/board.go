package console

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/oncepay/oncepay/internal/stack"
)

// commandTimeout bounds one command of the switchboard: a start waits for its service.
const commandTimeout = 30 * time.Second

// A boardRow is a service or a connection, with its commands.
type boardRow struct {
	Title    string
	Service  string   // whose state the row shows
	Commands []string // of stack
}

// board is what can be pressed.
var board = rows()

// services in the order in which they are mended, the stores first: a replica needs them.
var services = []string{stack.Postgres, stack.Redis, stack.PSP, stack.Mail, stack.API1, stack.API2, stack.Nginx}

// rows are those of the services, and then those of the connections.
func rows() (all []boardRow) {
	for _, service := range []struct{ name, verbs string }{
		{stack.API1, "kill pause resume stop start"}, {stack.API2, "kill pause resume stop start"}, {stack.Nginx, "stop start"},
		{stack.Redis, "flush kill pause resume stop start"}, {stack.Postgres, "crash pause resume stop start"},
		{stack.PSP, "kill pause resume stop start"}, {stack.Mail, "kill pause resume stop start"},
	} {
		row := boardRow{Title: title(service.name), Service: service.name}
		for verb := range strings.FieldsSeq(service.verbs) {
			row.Commands = append(row.Commands, verb+" "+service.name)
		}
		all = append(all, row)
	}
	for _, c := range breakable {
		between := c.from + " " + c.to
		all = append(all, boardRow{Title: title(c.from) + " → " + title(c.to),
			Commands: []string{"partition " + between, "slow " + between + " 300ms", "heal " + between}})
	}
	return all
}

// breakIt does a command of the board, and returns what the switchboard said.
func (s *Server) breakIt(ctx context.Context, form url.Values) (string, error) {
	command := form.Get("command")
	if !slices.ContainsFunc(board, func(row boardRow) bool { return slices.Contains(row.Commands, command) }) {
		return "", errors.New("there is no such button")
	}
	return s.command(ctx, command)
}

// command does one command of the switchboard.
func (s *Server) command(ctx context.Context, command string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, commandTimeout)
	defer cancel()
	defer s.look(ctx)
	var said strings.Builder
	it, err := s.board(&said)
	if err == nil {
		words := strings.Fields(command)
		err = it.Do(ctx, words[0], words[1:]...)
	}
	if err != nil {
		return "", fmt.Errorf("stack %s: %w", command, err)
	}
	return strings.TrimSpace(said.String()), nil
}

// mendIt ends every fault, and starts and resumes what does not run.
func (s *Server) mendIt(ctx context.Context, _ url.Values) (string, error) {
	var busy bool
	s.change(func(now *state) { busy = now.Story.Running })
	if busy { // what it breaks belongs to its story
		return "", errors.New("a demonstration is running; it mends everything at its end")
	}
	done, err := s.mend(ctx)
	return "Done: " + cmp.Or(strings.Join(done, ", "), "all was well"), err
}

// mend returns the commands that were needed.
func (s *Server) mend(ctx context.Context) (done []string, err error) {
	var needed []string
	now := s.look(ctx)
	for _, c := range breakable {
		if len(now.Faults[c]) > 0 {
			needed = append(needed, "heal "+c.from+" "+c.to)
		}
	}
	for _, name := range services {
		if remedy := now.Services[name].Remedy; remedy != "" {
			needed = append(needed, remedy)
		}
	}
	for _, command := range needed {
		if _, err := s.command(ctx, command); err != nil {
			return done, err
		}
		done = append(done, command)
	}
	return done, nil
}
