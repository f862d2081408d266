package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/internal/localserver"
	"github.com/oncepay/oncepay/internal/stack"
)

func TestConfig_FitsAStackByDefault(t *testing.T) {
	t.Parallel()
	cfg, err := parseConfig(nil, nil)
	require.NoError(t, err)
	var it stack.Topology
	require.Equal(t, map[string]string{
		"nginx": it.URL(), "api-1": "http://" + it.Addr(stack.API1), "api-2": "http://" + it.Addr(stack.API2),
		"ops 1": "http://" + it.Ops(stack.API1), "ops 2": "http://" + it.Ops(stack.API2),
		"provider": "http://" + it.Addr(stack.PSP), "postgres": localserver.PostgresURL(it.Addr(stack.Postgres)),
	}, map[string]string{
		"nginx": cfg.BaseURL, "api-1": cfg.API1URL, "api-2": cfg.API2URL, "ops 1": cfg.Ops1URL, "ops 2": cfg.Ops2URL,
		"provider": cfg.PSPURL, "postgres": cfg.Database,
	})
}
