package localserver

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"
)

// Image is a container image that we don't build: the variable that chooses it, the official one,
// and the stand-in that scripts/airgap-images.sh makes.
type Image struct{ Variable, Official, Airgap string }

// registryTimeout bounds a question to a registry, which may be behind a firewall that drops
// packets.
const registryTimeout = 15 * time.Second

// Choose returns the image that the environment names, or the official one or its stand-in,
// whichever is here, or can be pulled. It asks docker(1), and a registry.
func (i Image) Choose(ctx context.Context) (string, error) {
	names := strings.Fields(cmp.Or(os.Getenv(i.Variable), i.Official+" "+i.Airgap))
	works := func(ctx context.Context, command ...string) bool {
		return exec.CommandContext(ctx, "docker", command...).Run() == nil
	}
	at := slices.IndexFunc(names, func(name string) bool { return works(ctx, "image", "inspect", name) })
	if at < 0 {
		registry, cancel := context.WithTimeout(ctx, registryTimeout)
		defer cancel()
		if !works(registry, "manifest", "inspect", names[0]) && ctx.Err() == nil {
			return "", fmt.Errorf("the image %s is not here and cannot be pulled (scripts/airgap-images.sh)", names[0])
		}
	}
	if err := ctx.Err(); err != nil {
		return "", fmt.Errorf("ask the Docker engine for the image %s: %w", names[0], err)
	}
	return names[max(0, at)], nil
}
