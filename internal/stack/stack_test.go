package stack

import (
	"bytes"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestStep_SaysWhatItHasComeTo(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		s := &Stack{Topology: &Topology{}, options: Options{Out: &out}}
		require.NoError(t, s.step("build", "", func() (string, error) {
			time.Sleep(11 * time.Second)
			return "oncepay", nil
		}))
		failing := func() (string, error) { return "", errors.New("no engine") }
		require.EqualError(t, s.step("image", "", failing), "image: no engine")
		require.Equal(t, "  build                              oncepay                       11.0 s\n"+
			"  image                              FAILED                         0.0 s\n", out.String())
	})
}
