package stack

import (
	"os"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

// versioned is an image with a version, or a variable with such a default.
var versioned = regexp.MustCompile(`:\d+\.\d+(\.\d+)?\}?$|@sha256:[0-9a-f]{64}\}?$`)

// TestCompose_IsHardened reads the file as compose does, with its merged parts.
func TestCompose_IsHardened(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("../../docker-compose.yml")
	require.NoError(t, err)
	var file struct {
		Services map[string]struct {
			Image       string
			ReadOnly    bool     `yaml:"read_only"`
			CapDrop     []string `yaml:"cap_drop"`
			CapAdd      []string `yaml:"cap_add"`
			SecurityOpt []string `yaml:"security_opt"`
			PidsLimit   int      `yaml:"pids_limit"`
			MemLimit    string   `yaml:"mem_limit"`
			Privileged  bool
		}
	}
	require.NoError(t, yaml.Unmarshal(raw, &file))
	require.NotEmpty(t, file.Services)
	for name, s := range file.Services {
		require.True(t, s.ReadOnly, name)
		require.Equal(t, []string{"ALL"}, s.CapDrop, name)
		require.Empty(t, s.CapAdd, name)
		require.False(t, s.Privileged, name)
		require.Contains(t, s.SecurityOpt, "no-new-privileges:true", name)
		require.Positive(t, s.PidsLimit, name)
		require.NotEmpty(t, s.MemLimit, name)
		if s.Image != "${ONCEPAY_IMAGE:-oncepay:local}" && s.Image != "${ONCEPAY_TOOLS_IMAGE:-oncepay-tools:local}" { // just built
			require.Regexp(t, versioned, s.Image, name)
		}
	}
}
