package httpapi

import (
	"bytes"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/oncepay/oncepay/idempotency"
)

// Listen returns a listener whose connections have the answers of net/http itself in the API's
// shape. net/http answers a request that it cannot read before any handler runs, as plain text and
// without a request ID (net/http, server.go: conn.serve).
//
// A client that does not read its answer is cut off after ten seconds, and one more for each
// 64 KiB.
func Listen(l net.Listener) net.Listener { return listener{l, unreadTime} }

// An answer has unreadTime to be read, and a second more for each unreadRate bytes.
const unreadTime, unreadRate = 10 * time.Second, 64 << 10

type listener struct {
	net.Listener
	unreadTime time.Duration
}

// Accept implements net.Listener.
func (l listener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if tcp, ok := c.(*net.TCPConn); ok && err == nil {
		return &conn{TCPConn: tcp, unreadTime: l.unreadTime}, nil
	}
	return c, err
}

type conn struct {
	*net.TCPConn
	head       []byte    // what was read last; the buffer belongs to net/http
	latest     time.Time // when net/http gives an answer up; zero: never
	unreadTime time.Duration
}

// SetWriteDeadline implements net.Conn.
func (c *conn) SetWriteDeadline(t time.Time) error {
	c.latest = t
	return c.TCPConn.SetWriteDeadline(t)
}

// Read implements net.Conn.
func (c *conn) Read(p []byte) (int, error) {
	n, err := c.TCPConn.Read(p)
	c.head = p[:n]
	return n, err
}

// What net/http writes itself: a status line with these headers, or 417 with none of ours.
const (
	ownHeaders     = "\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\n"
	expectationHas = "HTTP/1.1 417 "
)

// Write implements net.Conn.
func (c *conn) Write(p []byte) (int, error) {
	deadline := time.Now().Add(c.unreadTime + time.Duration(len(p))*time.Second/unreadRate)
	if !c.latest.IsZero() && c.latest.Before(deadline) {
		deadline = c.latest
	}
	_ = c.TCPConn.SetWriteDeadline(deadline) // of a connection that is closed, Write fails, too
	if !bytes.HasPrefix(p, []byte("HTTP/1.1 ")) || !(bytes.Contains(p, []byte(ownHeaders)) || bytes.HasPrefix(p, []byte(expectationHas))) {
		return c.TCPConn.Write(p)
	}
	status, _ := strconv.Atoi(string(p[len("HTTP/1.1 "):len("HTTP/1.1 417")]))
	if _, err := c.TCPConn.Write(rawAnswer(unreadable(status, c.head))); err != nil {
		return 0, err
	}
	return len(p), nil
}

// unreadable is the problem with a request that net/http could not read.
func unreadable(status int, head []byte) problem {
	switch status {
	case http.StatusRequestHeaderFieldsTooLarge:
		return problem{status: status, code: "headers_too_large", detail: "The request line and the headers are too large."}
	case http.StatusNotImplemented:
		return problem{status: status, code: "not_implemented", detail: "This transfer encoding is not supported."}
	case http.StatusHTTPVersionNotSupported:
		return problem{status: status, code: "http_version_not_supported", detail: "This version of HTTP is not supported."}
	case http.StatusExpectationFailed:
		return problem{status: status, code: "expectation_failed", detail: "Expect must be 100-continue."}
	}
	if hasMalformedKey(head) {
		return problem{status: http.StatusBadRequest, code: idempotency.CodeKeyMalformed, detail: "Idempotency-Key must be printable ASCII."}
	}
	return problem{status: http.StatusBadRequest, code: "malformed_request", detail: "The request is not valid HTTP."}
}

// hasMalformedKey looks for an idempotency key with a control character.
func hasMalformedKey(head []byte) bool {
	for line := range strings.Lines(string(head)) {
		name, value, _ := strings.Cut(strings.TrimRight(line, "\r\n"), ":")
		control := func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }
		if strings.EqualFold(name, idempotency.HeaderKey) && strings.ContainsFunc(value, control) {
			return true
		}
	}
	return false
}

// rawAnswer is a whole response with a new request ID, after which the connection is closed.
func rawAnswer(p problem) []byte {
	id := uuid.NewString()
	body := p.body(id)
	head := fmt.Sprintf("HTTP/1.1 %d %s\r\nContent-Type: %s\r\nX-Request-ID: %s\r\nContent-Length: %d\r\nConnection: close\r\n\r\n",
		p.status, http.StatusText(p.status), problemType, id, len(body))
	return append([]byte(head), body...)
}
