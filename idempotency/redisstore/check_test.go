package redisstore_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/idempotency"
	"github.com/oncepay/oncepay/idempotency/redisstore"
	"github.com/oncepay/oncepay/internal/testenv"
)

func TestCheckServer(t *testing.T) {
	t.Parallel()
	server := testenv.Redis(t)
	require.NoError(t, redisstore.CheckServer(t.Context(), open(t, server)))

	for name, tt := range map[string]struct {
		wire *wire
		want string
	}{
		"old":             {&wire{info: "# Server\r\nredis_version:6.2.14\r\n"}, "version 6.2.14 is too old"},
		"very old":        {&wire{info: "redis_version:2.8.0\r\n"}, "too old"},
		"lacks NX GET":    {&wire{reply: "ERR syntax error"}, "SET NX GET: idempotency: store unavailable: ERR syntax error"},
		"is a replica":    {&wire{reply: "READONLY You can't write against a read only replica."}, "READONLY"},
		"speaks, and new": {&wire{info: "redis_version:255.255.255\r\n"}, ""},
		"hides a version": {&wire{info: "# Server\r\n"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			client := open(t, server)
			client.AddHook(tt.wire)
			err := redisstore.CheckServer(t.Context(), client)
			if tt.want == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, tt.want)
		})
	}
}

func TestCheckServerThatIsAway(t *testing.T) {
	t.Parallel()
	client := open(t, "redis://127.0.0.1:1")
	require.ErrorIs(t, redisstore.CheckServer(t.Context(), client), idempotency.ErrUnavailable)
}
