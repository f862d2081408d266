package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"runtime"

	"github.com/oncepay/oncepay/internal/stack"
	"github.com/oncepay/oncepay/internal/tiers"
)

// up brings the stack up, and opens its console if that is asked for.
func up(ctx context.Context, it *stack.Stack, open bool) error {
	if err := it.Up(ctx); err != nil || !open {
		return err
	}
	url := it.ConsoleURL()
	if url == "" {
		return errors.New("this stack has no console: it needs the native driver, and `stack up` without --no-console")
	}
	opener := "xdg-open"
	if runtime.GOOS == "darwin" {
		opener = "open"
	}
	if err := exec.CommandContext(ctx, opener, url).Run(); err != nil { //nolint:gosec // one of two names, and our own address
		return fmt.Errorf("open %s in a browser: %w", url, err)
	}
	return nil
}

// printKey writes what each tier knows of a key.
func printKey(ctx context.Context, it *stack.Stack, words []string, out io.Writer) error {
	if len(words) != 1 {
		return errors.New("usage: stack key KEY")
	}
	if !it.Claimed() {
		return fmt.Errorf("%w in %s", stack.ErrNoStack, it.Dir)
	}
	view := tiers.Read(ctx, tiers.Of(ctx, it), words[0])
	pretty := json.NewEncoder(out)
	pretty.SetIndent("", "  ")
	return pretty.Encode(view)
}
