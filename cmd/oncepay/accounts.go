package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"time"
	"unicode"

	"github.com/google/uuid"

	"github.com/oncepay/oncepay/internal/app"
)

// accountCommand is what to do with accounts and API keys.
type accountCommand struct {
	verb     string // such as "apikey issue"
	name     string // of a new account
	account  uuid.UUID
	customer uuid.UUID
	prefix   string // of an API key
	readOnly bool
	duration time.Duration // until a new key expires, 0: never; or until a rotated one does
}

// rotationGrace leaves a client time to change its key.
const rotationGrace = 24 * time.Hour

// parseAccounts reads account add NAME, account suspend|activate ID, apikey issue ID, apikey list,
// apikey revoke PREFIX, apikey rotate PREFIX or customer erase ID.
func parseAccounts(command string, args []string) (c accountCommand, err error) {
	if len(args) == 0 {
		return c, fmt.Errorf("%w: %s needs a command", errUsage, command)
	}
	c.verb = command + " " + args[0]
	flags := flag.NewFlagSet(c.verb, flag.ContinueOnError)
	flags.SetOutput(io.Discard) // main shows the usage
	wanted := 1
	switch c.verb {
	case "apikey issue":
		flags.BoolVar(&c.readOnly, "read-only", false, "")
		flags.Func("expires", "", func(text string) (err error) {
			if c.duration, err = time.ParseDuration(text); err == nil && c.duration <= 0 {
				err = errors.New("a key that expires needs a duration above zero")
			}
			return err
		})
	case "apikey rotate":
		flags.DurationVar(&c.duration, "grace", rotationGrace, "")
	case "apikey list":
		wanted = 0
	case "apikey revoke", "account add", "account suspend", "account activate", "customer erase":
	default:
		return c, fmt.Errorf("%w: there is no %q", errUsage, c.verb)
	}
	switch err := flags.Parse(args[1:]); {
	case err != nil:
		return c, fmt.Errorf("%w: %s: %w", errUsage, c.verb, err)
	case flags.NArg() != wanted:
		return c, fmt.Errorf("%w: %s: flags come first, then %d arguments", errUsage, c.verb, wanted)
	case c.duration < 0:
		return c, fmt.Errorf("%w: %s: a duration must not be negative", errUsage, c.verb)
	}
	return c, c.take(flags.Arg(0))
}

// take reads the one argument of a command.
func (c *accountCommand) take(arg string) (err error) {
	switch c.verb {
	case "account add":
		if strings.ContainsFunc(arg, unicode.IsControl) {
			return fmt.Errorf("%w: %s: a name has no control characters", errUsage, c.verb)
		}
		c.name = arg
	case "apikey revoke", "apikey rotate":
		c.prefix = arg
	case "apikey issue", "account suspend", "account activate":
		if c.account, err = uuid.Parse(arg); err != nil {
			return fmt.Errorf("%w: %s: %q is not the ID of an account", errUsage, c.verb, arg)
		}
	case "customer erase":
		if c.customer, err = uuid.Parse(arg); err != nil {
			return fmt.Errorf("%w: %s: %q is not the ID of a customer", errUsage, c.verb, arg)
		}
	}
	return nil
}

func runAccounts(ctx context.Context, c accountCommand, cfg app.Config, log *slog.Logger, stdout io.Writer) error {
	switch c.verb {
	case "account add":
		return app.AddAccount(ctx, cfg, log, stdout, c.name)
	case "account suspend", "account activate":
		return app.SuspendAccount(ctx, cfg, log, stdout, c.account, c.verb == "account suspend")
	case "apikey issue":
		return app.IssueAPIKey(ctx, cfg, log, stdout, c.account, c.readOnly, c.duration)
	case "apikey revoke":
		return app.RevokeAPIKey(ctx, cfg, log, stdout, c.prefix)
	case "apikey rotate":
		return app.RotateAPIKey(ctx, cfg, log, stdout, c.prefix, c.duration)
	case "customer erase":
		return app.EraseCustomer(ctx, cfg, log, stdout, c.customer)
	default:
		return app.ListAPIKeys(ctx, cfg, log, stdout)
	}
}
