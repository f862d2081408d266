package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/internal/localserver"
	"github.com/oncepay/oncepay/internal/stack/topology"
)

func TestConfig_FitsAStackByDefault(t *testing.T) {
	t.Parallel()
	cfg, err := parseConfig(nil, nil)
	require.NoError(t, err)
	var stack topology.Topology
	require.Equal(t, map[string]string{
		"nginx": stack.URL(), "api-1": "http://" + stack.Addr(topology.API1), "api-2": "http://" + stack.Addr(topology.API2),
		"ops 1": "http://" + stack.Ops(topology.API1), "ops 2": "http://" + stack.Ops(topology.API2),
		"provider": "http://" + stack.Addr(topology.PSP), "postgres": localserver.PostgresURL(stack.Addr(topology.Postgres)),
	}, map[string]string{
		"nginx": cfg.BaseURL, "api-1": cfg.API1URL, "api-2": cfg.API2URL, "ops 1": cfg.Ops1URL, "ops 2": cfg.Ops2URL,
		"provider": cfg.PSPURL, "postgres": cfg.Database,
	})
}
