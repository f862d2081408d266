package localserver

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
)

// Image is a container image that we don't build: the variable that chooses it, the official one,
// and the stand-in that scripts/airgap-images.sh makes.
type Image struct{ Variable, Official, Airgap string }

// Choose returns the image that the environment names, or the official one or its stand-in,
// whichever is here, or can be pulled. It asks docker(1), and a registry, which may be behind a
// firewall that drops packets, so the context has to have a deadline.
func (i Image) Choose(ctx context.Context) (string, error) {
	names := strings.Fields(cmp.Or(os.Getenv(i.Variable), i.Official+" "+i.Airgap))
	works := func(command ...string) bool { return exec.CommandContext(ctx, "docker", command...).Run() == nil }
	at := slices.IndexFunc(names, func(name string) bool { return works("image", "inspect", name) })
	if at < 0 && !works("manifest", "inspect", names[0]) {
		return "", fmt.Errorf("the image %s is not here and cannot be pulled (scripts/airgap-images.sh)", names[0])
	}
	return names[max(0, at)], nil
}
