package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/internal/testenv"
)

// asProgram makes the test binary be oncepay, so that a test can signal it.
const asProgram = "ONCEPAY_TEST_AS_PROGRAM"

// countRoots makes the test binary print whether it knows any certificate authority.
const countRoots = "ONCEPAY_TEST_COUNT_ROOTS"

// patience bounds every wait of these tests.
const patience = 30 * time.Second

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		main()
		return
	}
	if os.Getenv(countRoots) != "" {
		roots, err := x509.SystemCertPool()
		fmt.Print("roots: ", err == nil && !roots.Equal(x509.NewCertPool()))
		return
	}
	testenv.Main(m)
}

// oncepay runs a command in this process and returns what it printed.
func oncepay(t *testing.T, environ []string, args ...string) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var out bytes.Buffer
	err := run(ctx, args, environ, &out)
	return out.String(), err
}

func TestUsage_WrongIsRefused(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{nil, {"sevre"}, {"migrate"}, {"migrate", "sideways"}, {"migrate", "up", "now"}, {"migrate", "up", "--discard-keys"}, {"serve", "--port=1"}, {"seed", "x"}, {"log-key"}, {"log-key", "a", "b"},
		{"outbox"}, {"outbox", "drop"}, {"outbox", "list", "all"}, {"outbox", "retry", "one"}, {"outbox", "replay"}, {"outbox", "replay", "--since=0s"}} {
		_, err := oncepay(t, nil, args...)
		require.ErrorIs(t, err, errUsage, "%q", args)
	}
}

func TestUsage_WrongShowsTheUsageAndExitsWithTwo(t *testing.T) {
	t.Parallel()
	cmd := program(t, nil, "sevre")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	require.Error(t, cmd.Run())
	require.Equal(t, 2, cmd.ProcessState.ExitCode())
	require.Contains(t, stderr.String(), `unknown command "sevre"`)
	require.Contains(t, stderr.String(), "oncepay migrate up|down|version")
}

func TestUsage_HelpShowsIt(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"help"}, {"-h"}, {"--help"}, {"outbox", "--help"}, {"outbox", "retry", "-h"}, {"migrate", "-help"}, {"serve", "--help"}} {
		out, err := oncepay(t, nil, args...)
		require.NoError(t, err, "%q", args)
		require.Equal(t, usage, out)
	}
}

func TestConfig_BadVariableIsNamed(t *testing.T) {
	t.Parallel()
	_, err := oncepay(t, []string{"IDEMPOTENCY_LEASE=soon"}, "serve")
	require.ErrorContains(t, err, "IDEMPOTENCY_LEASE")
	_, err = oncepay(t, nil, "migrate", "up")
	require.ErrorContains(t, err, "DATABASE_URL must be set")
	_, err = oncepay(t, nil, "serve")
	require.ErrorContains(t, err, "REDIS_URL must be set")
}

// TestLogKey_FindsAKeyInTheLogs of production, which have its hash.
func TestLogKey_FindsAKeyInTheLogs(t *testing.T) {
	t.Parallel()
	hash, err := oncepay(t, []string{"LOG_SECRET=s"}, "log-key", "pay-1")
	require.NoError(t, err)
	require.Regexp(t, `^[0-9a-f]{16}\n$`, hash)
	other, err := oncepay(t, []string{"LOG_SECRET=t"}, "log-key", "pay-1")
	require.NoError(t, err)
	require.NotEqual(t, hash, other)
}

func TestCommands_MigrateAndSeed(t *testing.T) {
	t.Parallel()
	environ := []string{"DATABASE_URL=" + testenv.EmptyPostgres(t), "ENVIRONMENT=development"}
	version := func(direction ...string) string {
		out, err := oncepay(t, environ, append([]string{"migrate"}, direction...)...)
		require.NoError(t, err)
		return out
	}
	require.Equal(t, "schema version 0\n", version("version"))
	newest := version("up")
	require.Regexp(t, `^schema version [1-9]\d*\n$`, newest)
	require.Equal(t, newest, version("up"), "a second time changes nothing")

	for range 2 {
		out, err := oncepay(t, environ, "seed")
		require.NoError(t, err)
		require.Contains(t, out, "sk_test_demo")
	}
	_, err := oncepay(t, environ[:1], "seed")
	require.ErrorContains(t, err, "development alone", "production is the default")

	conn, err := pgx.Connect(t.Context(), strings.TrimPrefix(environ[0], "DATABASE_URL="))
	require.NoError(t, err)
	_, err = conn.Exec(t.Context(), `INSERT INTO idempotency_keys (account_id, key, fingerprint, operation, status, expires_at)
		SELECT id, 'k', sha256('r'), 'place_order', 'refused', now() + interval '1 hour' FROM accounts`)
	require.NoError(t, errors.Join(err, conn.Close(t.Context())))
	_, err = oncepay(t, environ, "migrate", "down")
	require.ErrorContains(t, err, "2 refused")
	require.ErrorContains(t, err, `"migrate down --discard-keys" deletes everything`)
	require.Equal(t, newest, version("version"))
	require.Equal(t, "schema version 0\n", version("down", "--discard-keys"))
	require.Equal(t, "schema version 0\n", version("down"), "nothing to delete")
}

func TestServe_UntilSIGTERM(t *testing.T) {
	t.Parallel()
	for _, signal := range []os.Signal{syscall.SIGTERM, syscall.SIGINT} {
		cmd := program(t, []string{
			"DATABASE_URL=" + testenv.Postgres(t), "REDIS_URL=" + testenv.Redis(t), "PSP_URL=http://127.0.0.1:1",
			"HTTP_ADDR=127.0.0.1:0", "OPS_ADDR=127.0.0.1:0", "ENVIRONMENT=development",
		}, "serve")
		out, err := cmd.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, cmd.Start())
		logs := json.NewDecoder(out)
		serving := awaitLine(t, logs, "serving")

		response, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Get("http://" + serving["addr"] + "/v1/orders")
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
		require.Equal(t, http.StatusUnauthorized, response.StatusCode)
		_, err = oncepay(t, []string{"OPS_ADDR=" + serving["ops_addr"]}, "healthcheck")
		require.NoError(t, err)

		require.NoError(t, cmd.Process.Signal(signal))
		awaitLine(t, logs, "stopped")
		_, err = io.Copy(io.Discard, out)
		require.NoError(t, err)
		require.NoError(t, cmd.Wait(), "exit 0")
		_, err = oncepay(t, []string{"OPS_ADDR=" + serving["ops_addr"]}, "healthcheck")
		require.ErrorContains(t, err, "healthcheck")
	}
}

// TestServe_DrainsAlsoAfterASecondSIGTERM has a request whose body comes after both signals.
func TestServe_DrainsAlsoAfterASecondSIGTERM(t *testing.T) {
	t.Parallel()
	cmd := program(t, []string{
		"DATABASE_URL=" + testenv.Postgres(t), "REDIS_URL=" + testenv.Redis(t), "PSP_URL=http://127.0.0.1:1",
		"HTTP_ADDR=127.0.0.1:0", "OPS_ADDR=127.0.0.1:0", "PSP_WEBHOOK_SECRET=whsec_MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIz",
		"ENVIRONMENT=development",
	}, "serve")
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	logs := json.NewDecoder(out)
	conn, err := net.Dial("tcp", awaitLine(t, logs, "serving")["addr"])
	require.NoError(t, err)
	defer func() { _ = conn.Close() }()
	_, err = io.WriteString(conn, "POST /v1/webhooks/psp HTTP/1.1\r\nHost: shop\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n")
	require.NoError(t, err)
	answers := bufio.NewReader(conn)
	line, err := answers.ReadString('\n') // the handler reads the body, so the request is in flight
	require.NoError(t, err)
	require.Contains(t, line, "100 Continue")

	require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
	awaitLine(t, logs, "draining")
	require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
	_, err = io.WriteString(conn, "{}")
	require.NoError(t, err)
	_, err = answers.ReadString('\n') // the end of 100 Continue
	require.NoError(t, err)
	response, err := http.ReadResponse(answers, nil)
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	require.Equal(t, http.StatusUnauthorized, response.StatusCode)
	awaitLine(t, logs, "stopped")
	_, err = io.Copy(io.Discard, out)
	require.NoError(t, err)
	require.NoError(t, cmd.Wait(), "exit 0")
}

func TestHealthcheck_FindsAReachableAddress(t *testing.T) {
	t.Parallel()
	for addr, want := range map[string]string{
		":9081": "localhost:9081", "0.0.0.0:9081": "localhost:9081", "[::]:9081": "localhost:9081",
		"127.0.0.1:9081": "127.0.0.1:9081", "api-1:9081": "api-1:9081",
	} {
		require.Equal(t, want, reachable(addr))
	}
}

// program is oncepay as a process of its own, which ends with the test.
func program(t *testing.T, environ []string, args ...string) *exec.Cmd {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, os.Args[0], args...)
	cmd.Env = slices.Concat(environ, []string{asProgram + "=1"})
	cmd.Stderr = os.Stderr
	t.Cleanup(func() {
		if cmd.Process != nil && cmd.ProcessState == nil {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		}
	})
	return cmd
}

// awaitLine reads the log up to a message and returns that line's strings.
func awaitLine(t *testing.T, logs *json.Decoder, message string) map[string]string {
	t.Helper()
	for {
		var line map[string]any
		require.NoError(t, logs.Decode(&line), "the log ended before %q", message)
		if line["msg"] != message {
			continue
		}
		text := map[string]string{}
		for name, value := range line {
			if s, ok := value.(string); ok {
				text[name] = s
			}
		}
		return text
	}
}

func TestOutbox_ListsRetriesAndReplays(t *testing.T) {
	t.Parallel()
	environ := []string{"DATABASE_URL=" + testenv.Postgres(t)}
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"outbox", "status"}, "order-confirmations"},
		{[]string{"outbox", "list"}, "no event is refused"},
		{[]string{"outbox", "retry"}, "0 events will be tried again"},
		{[]string{"outbox", "replay", "--since", "10m"}, "0 events will be published again"},
	} {
		out, err := oncepay(t, environ, c.args...)
		require.NoError(t, err)
		require.Contains(t, out, c.want)
	}
	_, err := oncepay(t, environ, "outbox", "retry", "999999")
	require.ErrorContains(t, err, "999999")
	require.NotErrorIs(t, err, errUsage, "the exit status is 1")
}

// TestProgram_HasRootsOfItsOwn: the image has no files, so no certificate authorities. Without
// roots no server's certificate could be verified.
func TestProgram_HasRootsOfItsOwn(t *testing.T) {
	t.Parallel()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = []string{countRoots + "=1", "SSL_CERT_FILE=/nowhere", "SSL_CERT_DIR=/nowhere"}
	out, err := cmd.Output()
	require.NoError(t, err)
	require.Equal(t, "roots: true", string(out))
}
