package pages_test

import (
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestReadme_BadgesSayWhatIsTrue(t *testing.T) {
	t.Parallel()
	repository := read(t)
	for badge, source := range map[string]struct {
		where  string
		value  *regexp.Regexp
		before string
	}{
		"docs/images/badge-go.svg":      {"go.mod", regexp.MustCompile(`(?m)^go (\d+\.\d+)`), "Go "},
		"docs/images/badge-licence.svg": {"LICENSE", regexp.MustCompile(`^(\w+) License\n`), "Licence: "},
	} {
		value := source.value.FindStringSubmatch(repository.files[source.where])
		require.NotNil(t, value, source.where)
		require.Contains(t, repository.files[badge], `aria-label="`+source.before+value[1]+`"`)
		require.Contains(t, repository.files[badge], ">"+value[1]+"</text>")
		require.Contains(t, repository.files["README.md"], "[!["+source.before+value[1]+"]("+badge+")]")
	}
}
