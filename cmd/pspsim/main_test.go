package main

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

// asProgram makes the test binary be pspsim, so that a test can kill it.
const asProgram = "PSPSIM_TEST_AS_PROGRAM"

// patience bounds every wait of these tests.
const patience = 20 * time.Second

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		main()
		return
	}
	goleak.VerifyTestMain(m)
}

// process is a running pspsim.
type process struct {
	t    *testing.T
	cmd  *exec.Cmd
	addr string
	logs io.Reader
}

func start(t *testing.T, journal string) *process {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, os.Args[0])
	cmd.Env = append(os.Environ(), asProgram+"=1", "PSPSIM_ADDR=127.0.0.1:0", "PSPSIM_DATA="+journal)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { // a test may have ended it already
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})

	logs := bufio.NewReader(out)
	line, err := logs.ReadBytes('\n')
	require.NoError(t, err)
	var listening struct {
		Msg, Addr string
	}
	require.NoError(t, json.Unmarshal(line, &listening, json.MatchCaseInsensitiveNames(true)))
	require.Equal(t, "listening", listening.Msg)
	return &process{t: t, cmd: cmd, addr: listening.Addr, logs: logs}
}

// end signals the process and returns its last output and its exit.
func (p *process) end(signal os.Signal) (logs string, exit error) {
	p.t.Helper()
	require.NoError(p.t, p.cmd.Process.Signal(signal))
	raw, err := io.ReadAll(p.logs)
	require.NoError(p.t, err)
	return string(raw), p.cmd.Wait()
}

func (p *process) do(method, path, key, body string) (string, error) {
	request, err := http.NewRequestWithContext(p.t.Context(), method, "http://"+p.addr+path, strings.NewReader(body))
	if err != nil {
		return "", err
	}
	request.Header.Set("Idempotency-Key", key)
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: patience}
	response, err := client.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	raw, err := io.ReadAll(response.Body)
	return string(raw), err
}

const charge = `{"amount":4200,"currency":"USD","reference":"order-1","source":"tok_visa"}`

func TestServe_ChargesSurviveAKill(t *testing.T) {
	t.Parallel()
	journal := filepath.Join(t.TempDir(), "journal")
	p := start(t, journal)
	first, err := p.do(http.MethodPost, "/v1/charges", "key-1", charge)
	require.NoError(t, err)
	slow := make(chan error, 1)
	go func() {
		_, err := p.do(http.MethodPost, "/v1/charges", "key-2", strings.Replace(charge, "tok_visa", "tok_slow_60s", 1))
		slow <- err
	}()
	var before string
	require.Eventually(t, func() bool {
		before, err = p.do(http.MethodGet, "/v1/charges", "", "")
		return err == nil && strings.Count(before, "ch_") == 2
	}, patience, 10*time.Millisecond)

	_, exit := p.end(syscall.SIGKILL)
	require.Error(t, exit)
	require.Error(t, <-slow)

	p = start(t, journal)
	after, err := p.do(http.MethodGet, "/v1/charges", "", "")
	require.NoError(t, err)
	require.Equal(t, before, after)
	again, err := p.do(http.MethodPost, "/v1/charges", "key-1", charge)
	require.NoError(t, err)
	require.Equal(t, strings.Replace(first, `"attempts":1`, `"attempts":2`, 1), again)
}

func TestServe_StopsCleanlyOnSignals(t *testing.T) {
	t.Parallel()
	for _, signal := range []os.Signal{syscall.SIGTERM, syscall.SIGINT} {
		p := start(t, filepath.Join(t.TempDir(), "journal"))
		logs, exit := p.end(signal)
		require.NoError(t, exit, "exit 0")
		require.Contains(t, logs, `"msg":"stopped"`)
	}
}

func TestRun_RefusesWhatItCannotDo(t *testing.T) {
	t.Parallel()
	set := func(pairs map[string]string) func(string) string {
		return func(name string) string { return pairs[name] }
	}
	folder := t.TempDir()
	// A journal for each: a test beside this one starts processes, and a child has its parent's
	// locks until it executes.
	journal := func(name string) string { return filepath.Join(folder, name) }
	err := run(t.Context(), []string{"--port", "1"}, set(nil), io.Discard)
	require.ErrorContains(t, err, "usage")
	err = run(t.Context(), nil, set(map[string]string{"PSPSIM_DATA": folder}), io.Discard)
	require.ErrorContains(t, err, "open journal")
	err = run(t.Context(), nil, set(map[string]string{"PSPSIM_DATA": journal("addr"), "PSPSIM_ADDR": "nonsense"}), io.Discard)
	require.ErrorContains(t, err, "listen")
	err = run(t.Context(), nil, set(map[string]string{"PSPSIM_DATA": journal("secret"), "PSPSIM_WEBHOOK_URL": "http://127.0.0.1:1"}), io.Discard)
	require.ErrorContains(t, err, "secret")
}
