// Command oncecheck finds out whether an API that has idempotency keys keeps what they promise.
// Run it with --help.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/oncepay/oncepay/internal/oncecheck"
)

func main() {
	ctx, _ := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	os.Exit(oncecheck.Main(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}
