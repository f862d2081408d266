// Command pspsim runs the card provider simulator; see package pspsim for what it does. It is
// configured by the environment:
//
//	PSPSIM_ADDR  where to listen (127.0.0.1:8090)
//	PSPSIM_DATA  journal file with all charges, created if absent (pspsim.journal)
//	PSPSIM_WEBHOOK_URL     where to send an event for each outcome; none: nowhere
//	PSPSIM_WEBHOOK_SECRET  what they are signed with: whsec_ and base64
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"syscall"

	"github.com/oncepay/oncepay/internal/pspsim"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	if err := run(ctx, os.Args[1:], os.Getenv, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "pspsim:", err)
		os.Exit(1)
	}
}

// run logs the address that it really listens on, so that port 0 is usable.
func run(ctx context.Context, args []string, getenv func(string) string, stdout io.Writer) (err error) {
	if len(args) > 0 {
		return fmt.Errorf("unknown arguments %q; usage: pspsim, with settings in the environment", args)
	}
	addr, data := cmp.Or(getenv("PSPSIM_ADDR"), "127.0.0.1:8090"), cmp.Or(getenv("PSPSIM_DATA"), "pspsim.journal")
	log := slog.New(slog.NewJSONHandler(stdout, nil))
	sim, err := pspsim.New(data, log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, sim.Close()) }()
	if url := getenv("PSPSIM_WEBHOOK_URL"); url != "" {
		if err := sim.SendEvents(url, getenv("PSPSIM_WEBHOOK_SECRET")); err != nil {
			return err
		}
	}
	listener, err := net.Listen("tcp", addr)
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	log.Info("listening", "addr", listener.Addr().String(), "journal", data)
	if err := sim.Serve(ctx, listener); err != nil {
		return err
	}
	log.Info("stopped")
	return nil
}
