package conformance

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
)

func newClient() *http.Client {
	return &http.Client{
		Timeout: answerTimeout, Transport: &http.Transport{MaxIdleConnsPerHost: 1, DisableCompression: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// exchange sends a request once and returns the status, and what is wrong with the answer.
func exchange(ctx context.Context, client *http.Client, s *spec, r request) (status int, wrong string) {
	send := sendHTTP
	if r.raw != nil {
		send = sendRaw
	}
	a, err := send(ctx, client, r)
	if err == nil {
		err = s.check(r, a)
	}
	if err != nil {
		wrong = err.Error()
	}
	return a.status, wrong
}

func sendHTTP(ctx context.Context, client *http.Client, r request) (answer, error) {
	q, err := http.NewRequestWithContext(ctx, r.method, r.base+r.target, bytes.NewReader(r.body))
	if err != nil {
		return answer{}, fmt.Errorf("make the request: %w", err)
	}
	q.Header = r.header
	response, err := client.Do(q) //nolint:bodyclose // read closes it
	if err != nil {
		return answer{}, fmt.Errorf("no answer: %w", err)
	}
	return read(response)
}

// sendRaw writes bytes to a connection of its own.
func sendRaw(ctx context.Context, _ *http.Client, r request) (answer, error) {
	u, err := url.Parse(r.base)
	if err != nil {
		return answer{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", u.Host)
	if err != nil {
		return answer{}, err
	}
	defer func() { _ = conn.Close() }()
	deadline, _ := ctx.Deadline()
	_ = conn.SetDeadline(deadline)
	// A server may answer and close before it has read everything: what it answered counts.
	_, writeErr := conn.Write(r.raw)
	response, err := http.ReadResponse(bufio.NewReader(conn), &http.Request{Method: r.method}) //nolint:bodyclose // read closes it
	if err != nil {
		return answer{}, fmt.Errorf("no answer: %w", errors.Join(err, writeErr))
	}
	return read(response)
}

func read(response *http.Response) (answer, error) {
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return answer{status: response.StatusCode}, fmt.Errorf("half an answer: %w", err)
	}
	return answer{status: response.StatusCode, header: response.Header, body: body}, nil
}

// strictUnmarshal reads one JSON value and nothing after it.
func strictUnmarshal(body []byte, v any) error {
	decoder := json.NewDecoder(bytes.NewReader(body))
	if err := decoder.Decode(v); err != nil {
		return err
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return errors.New("more than one value")
	}
	return nil
}
