package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"strconv"
	"time"

	"github.com/oncepay/oncepay/internal/app"
)

// listed is how many events fit on a few screens.
const listed = 100

// outboxCommand is what to do with the outbox.
type outboxCommand struct {
	verb      string
	positions []int64       // for retry; none: all that were refused
	since     time.Duration // for replay
}

// parseOutbox reads status, list, retry [POSITION …] or replay --since DURATION.
func parseOutbox(args []string) (outboxCommand, error) {
	if len(args) == 0 {
		return outboxCommand{}, fmt.Errorf("%w: outbox takes status, list, retry or replay", errUsage)
	}
	command := outboxCommand{verb: args[0]}
	flags := flag.NewFlagSet("outbox", flag.ContinueOnError)
	flags.SetOutput(io.Discard) // main shows the usage
	if command.verb == "replay" {
		flags.DurationVar(&command.since, "since", 0, "")
	}
	if err := flags.Parse(args[1:]); err != nil {
		return outboxCommand{}, fmt.Errorf("%w: outbox %s: %w", errUsage, command.verb, err)
	}
	switch command.verb {
	case "status", "list":
		return command, noMore(flags)
	case "replay":
		if command.since <= 0 {
			return outboxCommand{}, fmt.Errorf("%w: outbox replay takes --since and a duration such as 10m", errUsage)
		}
		return command, noMore(flags)
	case "retry":
		for _, arg := range flags.Args() {
			position, err := strconv.ParseInt(arg, 10, 64)
			if err != nil {
				return outboxCommand{}, fmt.Errorf("%w: outbox retry: %q is not the position of an event", errUsage, arg)
			}
			command.positions = append(command.positions, position)
		}
		return command, nil
	}
	return outboxCommand{}, fmt.Errorf("%w: outbox has no command %q", errUsage, command.verb)
}

func noMore(flags *flag.FlagSet) error {
	if flags.NArg() > 0 {
		return fmt.Errorf("%w: outbox: %q is too much", errUsage, flags.Arg(0))
	}
	return nil
}

func runOutbox(ctx context.Context, command outboxCommand, cfg app.Config, log *slog.Logger, stdout io.Writer) error {
	switch command.verb {
	case "retry":
		return app.RetryEvents(ctx, cfg, log, stdout, command.positions...)
	case "replay":
		return app.ReplayEvents(ctx, cfg, log, stdout, command.since)
	case "status":
		return app.OutboxStatus(ctx, cfg, log, stdout)
	default:
		return app.ListEvents(ctx, cfg, log, stdout, listed)
	}
}
