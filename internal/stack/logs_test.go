package stack

import (
	"bytes"
	"context"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const replicaLogs = `==> api-1.log <==
{"time":"2026-11-22T06:51:31.9Z","level":"ERROR","msg":"request failed","pod_id":"api-1","request_id":"one-one-one","code":"internal","cause":"boom"}
{"time":"2026-11-22T06:51:32Z","level":"INFO","msg":"idempotency check","pod_id":"api-1","event":"idempotency_check","key":"k1","endpoint":"POST /v1/orders","result":"acquired","duration_ms":1.25,"request_id":"one-one-one"}
{"time":"2026-11-22T06:51:32Z","level":"INFO","msg":"idempotency check","pod_id":"api-1","event":"idempotency_check","key":"k2","result":"acquired","request_id":"other"}
{"time":"2026-11-22T06:51:33Z","level":"INFO","msg":"request","pod_id":"api-1","event":"http_request","request_id":"one-one-one","method":"POST","path":"/v1/orders","status":500,"duration_ms":7,"client_ip":"10.1.2.3"}
{"time":"2026-11-22T06:51:33Z","level":"INFO","msg":"request","pod_id":"api-1","event":"http_request","request_id":"other","method":"POST","path":"/v1/orders","status":201}
panic: not JSON
api-2  | {"time":"2026-11-22T06:51:34Z","level":"INFO","msg":"request","pod_id":"api-2","event":"http_request","request_id":"one-one-one","method":"GET","path":"/v1/orders","status":200}
`

// logged is a driver whose replicas have printed a text.
type logged struct {
	driver
	text string
}

func (l logged) logs(ctx context.Context, _ []string, _ bool) *exec.Cmd {
	return exec.CommandContext(ctx, "printf", "%s", l.text)
}

func TestKeyLogs_PrintsTheLinesOfOneKey(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	s := newStack(t, Options{Out: &out})
	s.driver = logged{text: replicaLogs}
	require.NoError(t, s.KeyLogs(t.Context(), "k1"))
	require.Equal(t, `06:51:31.900 one-one- api-1 ERROR request failed internal boom
06:51:32.000 one-one- api-1 INFO idempotency check acquired POST /v1/orders
06:51:33.000 one-one- api-1 INFO request POST /v1/orders 500
`, out.String(), "request one-one-one at api-2 is another copy, and has not that key")
}

func TestKeyLogs_SaysThatAKeyIsUnknown(t *testing.T) {
	t.Parallel()
	s := newStack(t, Options{})
	s.driver = logged{text: replicaLogs}
	require.ErrorContains(t, s.KeyLogs(t.Context(), "k3"), "nothing about the key")
}

func TestReadByReplicas_IsWhenARequestBegan(t *testing.T) {
	t.Parallel()
	s := newStack(t, Options{})
	s.driver = logged{text: `{"time":"2026-11-22T06:51:33Z","event":"http_request","request_id":"r1","duration_ms":7.5}
{"time":"2026-11-22T06:51:34Z","event":"idempotency_check","request_id":"r2","duration_ms":1}
`}
	read, err := s.ReadByReplicas(t.Context())
	require.NoError(t, err)
	require.Len(t, read, 1)
	require.Equal(t, time.Date(2026, 11, 22, 6, 51, 32, 992_500_000, time.UTC), read["r1"])
}
