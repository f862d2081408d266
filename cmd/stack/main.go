// Command stack runs oncepay on this machine and breaks it on purpose. `go run ./cmd/stack` alone
// tells how.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strconv"

	"github.com/cli/browser"
	"github.com/spf13/pflag"

	"github.com/oncepay/oncepay/internal/console"
	"github.com/oncepay/oncepay/internal/stack"
	"github.com/oncepay/oncepay/internal/stack/mailsink"
	"github.com/oncepay/oncepay/internal/tiers"
)

const usage = `usage: go run ./cmd/stack COMMAND [FLAGS]

  up                         bring up two replicas behind nginx with PostgreSQL, Redis and the provider simulator
  down                       remove all of it
  key KEY                    what Redis, PostgreSQL and the provider know of an idempotency key, as JSON
  status                     what runs where, and which faults are in force
  logs [-f] [SERVICE …]      what the services have printed
  logs --key KEY             what both replicas have logged about an idempotency key, in order
  watch                      shop until Ctrl-C, with a line each second: run it in a second terminal, and break something

Break it (SERVICE is api-1, api-2, pspsim, mail, redis, postgres or nginx; with --pooler pgbouncer also pgbouncer;
    with --redis sentinel also redis-replica and sentinel-1 to 3):
  kill | pause | resume SERVICE      SIGKILL, SIGSTOP, SIGCONT; not nginx, and no kill of postgres
  stop | start | restart SERVICE     in order; Redis starts empty, the others keep their data
  flush redis                        Redis loses everything
  partition | heal SERVICE SERVICE   cut a connection, such as: partition api-1 redis
  partition redis-replica redis      with Sentinel: the replica stays behind, and would be appointed without what it missed
  promote postgres                   with --postgres standby: end the primary at once, the standby takes over
  follow postgres                    after that: the former primary becomes the standby, as a new copy
  crash postgres                     end it at once, without a word to anybody; it recovers at the next start (native)
  cut SERVICE SERVICE BYTES          end each connection after so many bytes of answers, mid-answer; heal ends that, too
  slow SERVICE SERVICE DELAY         delay the answers on a connection; heal ends that, too

`

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), stack.Interrupts()...)
	err := run(ctx, os.Args[1:], os.Getenv, os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "stack:", err)
		os.Exit(1)
	}
}

// settings are what the flags say.
type settings struct {
	stack.Options
	noConsole, open, follow bool
	key                     string
}

// run does one command; args may have flags before and after the words.
func run(ctx context.Context, args []string, getenv func(string) string, out io.Writer) error {
	var s settings
	words, err := parse(&s, args, getenv, out)
	if errors.Is(err, pflag.ErrHelp) {
		return nil
	}
	if err != nil {
		return err
	}
	command, words := words[0], words[1:]
	n := len(words)
	switch { // these run inside the stack, not on it: the drivers give them their words
	case command == "proxy" && n == 2:
		offset, err := strconv.Atoi(words[1])
		return errors.Join(err, stack.ServeProxy(ctx, words[0], offset, os.Stderr))
	case command == "mailsink" && n == 3:
		return mailsink.Run(ctx, words[0], words[1], words[2])
	case command == "probe" && n == 1:
		_, err := stack.Get(ctx, words[0])
		return err
	case command == "console" && n == 0:
		return console.Run(ctx, s.Dir)
	}
	s.Out, s.Console = out, !s.noConsole
	it, err := stack.New(s.Options)
	if err != nil {
		return err
	}
	switch {
	case command == "up" && n == 0:
		if err := it.Up(ctx); err != nil || !s.open {
			return err
		}
		return browser.OpenURL(it.ConsoleURL())
	case command == "down" && n == 0:
		return it.Down(ctx)
	case command == "status" && n == 0:
		return it.PrintStatus(ctx)
	case command == "logs" && s.key != "":
		return it.KeyLogs(ctx, s.key)
	case command == "logs":
		return it.Logs(ctx, out, words, s.follow)
	case command != "key" && command != "watch":
		return it.Do(ctx, command, words...)
	case command == "key" && n != 1:
		return errors.New("usage: stack key KEY")
	case !it.Claimed():
		return fmt.Errorf("%w in %s", stack.ErrNoStack, it.Dir)
	case command == "watch":
		return console.Watch(ctx, it.Topology, out)
	}
	pretty := json.NewEncoder(out)
	pretty.SetIndent("", "  ")
	return pretty.Encode(tiers.Read(ctx, it.Topology, words[0]))
}

// parse reads flags from anywhere among the words, and returns the words.
func parse(s *settings, args []string, getenv func(string) string, out io.Writer) (words []string, err error) {
	flags := pflag.NewFlagSet("stack", pflag.ContinueOnError)
	flags.SortFlags = false
	flags.SetOutput(out)
	flags.Usage = func() { _, _ = fmt.Fprint(out, usage, "Flags:\n", flags.FlagUsagesWrapped(120)) }
	flags.StringVar(&s.Dir, "dir", ".stack", "the stack's `folder`, relative to the repository")
	flags.StringVar(&s.Driver, "driver", getenv("STACK_DRIVER"), "up: auto, native or compose (also $STACK_DRIVER)")
	flags.StringVar(&s.Redis, "redis", getenv("STACK_REDIS"), "up: single, or sentinel (native; also $STACK_REDIS)")
	flags.StringVar(&s.Postgres, "postgres", getenv("STACK_POSTGRES"),
		"up: single, standby, or sync-standby, which has each commit before it is answered (also $STACK_POSTGRES)")
	flags.StringVar(&s.Pooler, "pooler", getenv("STACK_POOLER"),
		"up: pgbouncer, between the replicas and PostgreSQL, in transaction mode (native; also $STACK_POOLER)")
	flags.StringArrayVar(&s.Env, "env", nil, "up: `KEY=VALUE` for both replicas; may be given again")
	flags.IntVar(&s.PortOffset, "port-offset", 0, "up: `N` is added to every port, for a second stack in another --dir")
	flags.BoolVar(&s.Direct, "direct", getenv("STACK_DIRECT") != "", "up: without the fault proxy (also $STACK_DIRECT)")
	flags.StringVar(&s.BuildTags, "tags", "", "up: build our programs with these `tags`, such as failpoints")
	flags.BoolVar(&s.NoInstall, "no-install", getenv("NO_INSTALL") != "", "up: name missing programs (also $NO_INSTALL)")
	flags.BoolVar(&s.noConsole, "no-console", false, "up: without the console, and the traces for it")
	flags.BoolVar(&s.open, "open", false, "up: open the console in the browser")
	flags.BoolVarP(&s.follow, "follow", "f", false, "logs: go on until Ctrl-C")
	flags.StringVar(&s.key, "key", "", "logs: only of the requests with this idempotency `key`")
	if err := flags.Parse(args); err != nil {
		return nil, err
	}
	if flags.NArg() == 0 || flags.Arg(0) == "help" {
		flags.Usage()
		return nil, pflag.ErrHelp
	}
	return flags.Args(), nil
}
