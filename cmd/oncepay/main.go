// Command oncepay is the shop's service: an order and payment API in which retrying is always safe.
// See "oncepay help".
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/oncepay/oncepay/internal/app"
)

const usage = `oncepay is an order and payment service in which retrying is always safe.

Usage:
  oncepay serve                     answer requests until SIGTERM or SIGINT, then drain
  oncepay migrate up|down|version   bring the database's schema to the newest version, remove it with all data, or show it;
                                    down needs --discard-keys while there are idempotency keys that still count
  oncepay seed                      add the demo data; with ENVIRONMENT=development only
  oncepay account add NAME          add an account, and show its ID
  oncepay account suspend|activate ID
                                    refuse everything of an account, kept answers too, or no longer
  oncepay apikey issue [--read-only] [--expires 720h] ID
                                    make an API key of an account, and show it once
  oncepay apikey list               show the beginnings of all keys, and their states
  oncepay apikey revoke PREFIX      end a key, within AUTH_CACHE_TTL (2s)
  oncepay apikey rotate [--grace 24h] PREFIX
                                    make a key with the same rights and end, and end the old one after the grace
  oncepay customer erase ID         erase name, e-mail address, addresses and kept answers of a customer, and say what remains
  oncepay outbox status             show how far the relay and each consumer group have come
  oncepay outbox list               show the events that a consumer group refused
  oncepay outbox retry [POSITION …] try refused events again
  oncepay outbox replay --since 10m publish again what happened since, for consumers elsewhere that lost it; as far
                                    back as OUTBOX_RETENTION (168h). Our own groups get lost events by themselves
  oncepay log-key KEY               show what the logs have in place of an idempotency key
  oncepay healthcheck               exit 0 when the replica at OPS_ADDR is ready
  oncepay help                      show this

It is configured by the environment, or by files: NAME_FILE names a file with the value of NAME. The most important variables:
  DATABASE_URL   postgres://user:password@host:port/name
  REDIS_URL      redis://host:port/0
  PSP_URL        http://host:port of the payment provider
  HTTP_ADDR      where the API listens (127.0.0.1:8081)
  OPS_ADDR       where /livez, /readyz and /metrics are (127.0.0.1:9081)
  ENVIRONMENT    development or production (production)
`

// errUsage says that the command line is wrong, which has an exit code of its own.
var errUsage = errors.New("wrong usage")

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	// A second Ctrl-C ends the process at once. A second SIGTERM does not: supervisors repeat it,
	// and the drain has its own deadline.
	context.AfterFunc(ctx, func() { signal.Reset(os.Interrupt) })
	limitMemory(os.Getenv)
	err := run(ctx, os.Args[1:], os.Environ(), os.Stdout)
	switch {
	case errors.Is(err, errUsage):
		fmt.Fprintf(os.Stderr, "oncepay: %v\n\n%s", err, usage)
		os.Exit(2)
	case err != nil:
		fmt.Fprintln(os.Stderr, "oncepay:", err)
		os.Exit(1)
	}
}

// run is the program: args without its name, environ as os.Environ returns it.
func run(ctx context.Context, args, environ []string, stdout io.Writer) error {
	command, rest := "", args
	if len(args) > 0 {
		command, rest = args[0], args[1:]
	}
	if command == "help" || slices.ContainsFunc(args, isHelp) {
		_, err := io.WriteString(stdout, usage)
		return err
	}
	switch command {
	case "":
		return fmt.Errorf("%w: a command is missing", errUsage)
	case "migrate":
		if !isDirection(strings.Join(rest, " ")) {
			return fmt.Errorf("%w: migrate takes up, down [--discard-keys] or version", errUsage)
		}
	case "serve", "seed", "healthcheck":
		if len(rest) > 0 {
			return fmt.Errorf("%w: %s takes no arguments", errUsage, command)
		}
	case "account", "apikey", "customer":
		if _, err := parseAccounts(command, rest); err != nil {
			return err
		}
	case "log-key":
		if len(rest) != 1 {
			return fmt.Errorf("%w: log-key takes one idempotency key", errUsage)
		}
	case "outbox":
		if _, err := parseOutbox(rest); err != nil {
			return err
		}
	default:
		return fmt.Errorf("%w: unknown command %q", errUsage, command)
	}
	cfg, err := app.ParseConfig(environ)
	if err != nil {
		return err
	}
	return runCommand(ctx, command, rest, cfg, stdout)
}

func runCommand(ctx context.Context, command string, args []string, cfg app.Config, stdout io.Writer) error {
	logs := stdout
	if command != "serve" {
		logs = os.Stderr // standard output is the result, for scripts
	}
	log := cfg.NewLogger(logs)
	app.QuietRedis(log)
	app.QuietTracing(log)
	switch command {
	case "migrate":
		return migrate(ctx, strings.Join(args, " "), cfg, log, stdout)
	case "seed":
		return seed(ctx, cfg, log, stdout)
	case "outbox":
		command, err := parseOutbox(args)
		if err != nil {
			return err
		}
		return runOutbox(ctx, command, cfg, log, stdout)
	case "account", "apikey", "customer":
		parsed, err := parseAccounts(command, args)
		if err != nil {
			return err
		}
		return runAccounts(ctx, parsed, cfg, log, stdout)
	case "healthcheck":
		return healthcheck(ctx, cfg)
	case "log-key":
		_, err := fmt.Fprintln(stdout, cfg.LogKey(args[0]))
		return err
	default:
		return serve(ctx, cfg, log)
	}
}

func isHelp(s string) bool { return s == "-h" || s == "-help" || s == "--help" }

func isDirection(s string) bool {
	return slices.Contains([]string{"up", app.Down, app.DownWithKeys, "version"}, s)
}
