package deployment

import (
	"bytes"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/internal/stack/topology"
)

func TestBuildProgress_SaysHowFarASlowBuildIs(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	d := &Deployment{Topology: &topology.Topology{}, Out: &out}
	step := d.Step("build", "")
	defer step.Stop()
	p := &buildProgress{step: step, told: time.Now()}
	for _, part := range []string{"go: downloading example.com/a v1.0.0\nerrors\nnet/", "http\n", "# example.com/b\nb/b.go:1:2: undefined: c\n"} {
		n, err := p.Write([]byte(part))
		require.NoError(t, err)
		require.Len(t, part, n)
	}
	require.Empty(t, out.String(), "too early")

	p.told = time.Now().Add(-slowStep)
	_, err := p.Write([]byte("os\n"))
	require.NoError(t, err)
	_, err = p.Write([]byte("io\n"))
	require.NoError(t, err)
	require.Equal(t, "  build                       … 1 modules downloaded, 3 packages compiled\n", out.String())
	require.Equal(t, "# example.com/b\nb/b.go:1:2: undefined: c\n", p.complaints.String())
}
