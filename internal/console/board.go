package console

import (
	"context"
	"errors"
	"fmt"
	"net/http"
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
var board = []boardRow{
	serviceRow(stack.API1, "kill", "pause", "resume", "stop", "start"),
	serviceRow(stack.API2, "kill", "pause", "resume", "stop", "start"),
	serviceRow(stack.Nginx, "stop", "start"),
	serviceRow(stack.Redis, "flush", "kill", "pause", "resume", "stop", "start"),
	serviceRow(stack.Postgres, "crash", "pause", "resume", "stop", "start"),
	serviceRow(stack.PSP, "kill", "pause", "resume", "stop", "start"),
	serviceRow(stack.Mail, "kill", "pause", "resume", "stop", "start"),
	connectionRow(stack.API1, stack.Redis),
	connectionRow(stack.API1, stack.Postgres),
	connectionRow(stack.API1, stack.PSP),
	connectionRow(stack.API2, stack.Redis),
	connectionRow(stack.API2, stack.Postgres),
	connectionRow(stack.API2, stack.PSP),
	connectionRow(stack.Nginx, stack.API1),
	connectionRow(stack.Nginx, stack.API2),
}

// services in the order in which they are mended, the stores first: a replica needs them.
var services = []string{stack.Postgres, stack.Redis, stack.PSP, stack.Mail, stack.API1, stack.API2, stack.Nginx}

func serviceRow(name string, verbs ...string) boardRow {
	row := boardRow{Title: titles[name], Service: name}
	for _, verb := range verbs {
		row.Commands = append(row.Commands, verb+" "+name)
	}
	return row
}

func connectionRow(from, to string) boardRow {
	between := from + " " + to
	return boardRow{Title: titles[from] + " → " + titles[to],
		Commands: []string{"partition " + between, "slow " + between + " 300ms", "heal " + between}}
}

// serveBoard does a command of the board, and answers with what the switchboard said.
func (s *Server) serveBoard(w http.ResponseWriter, r *http.Request) {
	command := r.PostFormValue("command")
	if !slices.ContainsFunc(board, func(row boardRow) bool { return slices.Contains(row.Commands, command) }) {
		http.Error(w, "There is no such button.", http.StatusBadRequest)
		return
	}
	// A page that is closed must not leave a command half done.
	said, err := s.command(context.WithoutCancel(r.Context()), command)
	respond(w, said, err)
}

// command does one command of the switchboard.
func (s *Server) command(ctx context.Context, command string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, commandTimeout)
	defer cancel()
	words := strings.Fields(command)
	said, err := s.cfg.Do(ctx, words[0], words[1:]...)
	s.look(ctx)
	if err != nil {
		return "", fmt.Errorf("stack %s: %w", command, err)
	}
	return strings.TrimSpace(said), nil
}

// serveMend ends every fault, and starts and resumes what does not run.
func (s *Server) serveMend(w http.ResponseWriter, r *http.Request) {
	var busy bool
	s.change(func(now *state) { busy = now.Story.Running })
	if busy { // what it breaks belongs to its story
		respond(w, "", errors.New("a demonstration is running; it mends everything at its end"))
		return
	}
	done, err := s.mend(context.WithoutCancel(r.Context()))
	said := "Everything is well already."
	if len(done) > 0 {
		said = "Done: " + strings.Join(done, ", ")
	}
	respond(w, said, err)
}

// mend returns the commands that were needed.
func (s *Server) mend(ctx context.Context) (done []string, err error) {
	for _, command := range s.look(ctx).remedies() {
		if _, err := s.command(ctx, command); err != nil {
			return done, err
		}
		done = append(done, command)
	}
	return done, nil
}

// remedies are the commands that end what is wrong.
func (h health) remedies() (commands []string) {
	for _, c := range arrows {
		if len(h.Faults[c]) > 0 {
			commands = append(commands, "heal "+c.from+" "+c.to)
		}
	}
	for _, name := range services {
		if remedy := h.Services[name].Remedy; remedy != "" {
			commands = append(commands, remedy)
		}
	}
	return commands
}

// respond answers a button with one sentence.
func respond(w http.ResponseWriter, said string, err error) {
	if err != nil {
		http.Error(w, err.Error(), http.StatusConflict)
		return
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = fmt.Fprintln(w, said)
}
