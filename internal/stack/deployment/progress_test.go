package deployment

import (
	"bytes"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/internal/stack/topology"
)

func TestStep_SaysThatItIsSlow(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		d := &Deployment{Topology: &topology.Topology{}, Out: &out}
		step := d.Step("build", "")
		time.Sleep(2*slowStep + time.Second)
		require.NoError(t, step.End("oncepay", nil))
		require.EqualError(t, d.Step("image", "").End("", errors.New("no engine")), "image: no engine")
		synctest.Wait()
		require.Equal(t, "  build                       … 5 s\n"+
			"  build                       … 10 s\n"+
			"  build                       oncepay                       11.0 s\n"+
			"  image                       FAILED                         0.0 s\n", out.String())
	})
}
