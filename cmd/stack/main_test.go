package main

import (
	"bytes"
	"io"
	"testing"

	"github.com/stretchr/testify/require"
)

func noEnv(string) string { return "" }

func TestFlags_MayStandAnywhere(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{
		{"--dir", "x", "--env", "A=1", "partition", "api-1", "redis", "--env", "B=2"},
		{"partition", "--env", "A=1", "api-1", "--dir=x", "redis", "--env", "B=2"},
		{"partition", "api-1", "redis", "--dir", "x", "--env=A=1", "--env=B=2"},
	} {
		var s settings
		words, err := parse(&s, args, noEnv, io.Discard)
		require.NoError(t, err)
		require.Equal(t, []string{"partition", "api-1", "redis"}, words)
		require.Equal(t, "x", s.Dir)
		require.Equal(t, []string{"A=1", "B=2"}, s.Env)
	}
}

func TestDriver_IsTheFlagsThenTheEnvironments(t *testing.T) {
	t.Parallel()
	getenv := func(name string) string { return map[string]string{"STACK_DRIVER": "compose"}[name] }
	for driver, args := range map[string][]string{"compose": {"up"}, "native": {"up", "--driver", "native"}} {
		var s settings
		_, err := parse(&s, args, getenv, io.Discard)
		require.NoError(t, err)
		require.Equal(t, driver, s.Driver)
	}
}

func TestUsage_IsPrintedWithoutACommand(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{nil, {"help"}, {"--help"}, {"up", "-h"}} {
		var out bytes.Buffer
		require.NoError(t, run(t.Context(), args, noEnv, &out))
		require.Contains(t, out.String(), "partition | heal SERVICE SERVICE")
		require.Contains(t, out.String(), "--port-offset N")
	}
}

func TestArguments_MistakesAreNamed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir() // no stack in there
	for want, args := range map[string][]string{
		`unknown command ["explode"]`:            {"explode"},
		"usage: stack partition SERVICE SERVICE": {"partition", "api-1"},
		`not on "nginx"`:                         {"kill", "nginx"},
		`unknown driver "podman"`:                {"up", "--driver", "podman"},
		`"LEASE" is not KEY=VALUE`:               {"up", "--env", "LEASE"},
		"the port offset must be between 0":      {"up", "--port-offset", "60000"},
		"no stack is up":                         {"kill", "api-1"},
		"no stack is up in " + dir:               {"status"},
		"no stack is up in":                      {"key", "k"},
		"usage: stack key KEY":                   {"key"},
		`unknown command ["down" "api-1"]`:       {"down", "api-1"},
		"unknown flag: --no-such-flag":           {"up", "--no-such-flag"},
	} {
		err := run(t.Context(), append(args, "--dir", dir), noEnv, io.Discard)
		require.ErrorContains(t, err, want)
	}
}
