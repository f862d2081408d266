// Command pspsim runs the card provider simulator; see package pspsim for what it does. It is
// configured by the environment:
//
//	PSPSIM_ADDR  where to listen (127.0.0.1:8090)
//	PSPSIM_DATA  journal file with all charges, created if absent (pspsim.journal)
//	PSPSIM_WEBHOOK_URL     where to send an event for each outcome; none: nowhere
//	PSPSIM_WEBHOOK_SECRET  what they are signed with: whsec_ and base64
//
// "pspsim healthcheck" exits 0 when the simulator at PSPSIM_ADDR is well; it is for containers that
// have no curl.
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/oncepay/oncepay/internal/pspsim"
)

const (
	defaultAddr = "127.0.0.1:8090"
	defaultData = "pspsim.journal"
	// healthTimeout is below the interval of every usual health checker.
	healthTimeout = 2 * time.Second
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	if err := run(ctx, os.Args[1:], os.Getenv, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "pspsim:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, getenv func(string) string, stdout io.Writer) error {
	addr := cmp.Or(getenv("PSPSIM_ADDR"), defaultAddr)
	switch {
	case len(args) == 0:
		return serve(ctx, addr, getenv, stdout)
	case len(args) == 1 && args[0] == "healthcheck":
		return healthcheck(ctx, addr)
	}
	return fmt.Errorf("unknown arguments %q; usage: pspsim [healthcheck]", args)
}

// serve logs the address that it really listens on, so that port 0 is usable.
func serve(ctx context.Context, addr string, getenv func(string) string, stdout io.Writer) (err error) {
	log, data := slog.New(slog.NewJSONHandler(stdout, nil)), cmp.Or(getenv("PSPSIM_DATA"), defaultData)
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

func healthcheck(ctx context.Context, addr string) error {
	ctx, cancel := context.WithTimeout(ctx, healthTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+addr+"/healthz", nil)
	if err != nil {
		return fmt.Errorf("healthcheck: %w", err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return fmt.Errorf("healthcheck: %w", err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("healthcheck: %s", response.Status)
	}
	return nil
}
