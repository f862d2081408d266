package oncecheck

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/oncepay/oncepay/internal/stack/faultproxy"
	"github.com/oncepay/oncepay/internal/wait"
)

// again repeats a request whose answer did not arrive. It has one effect, and a later retry gets
// the same answer.
func (p *probe) again(r Request, lost Exchange) {
	began, first := time.Now(), p.outwait("the retry", r)
	if !first.succeeded() {
		p.broken([]Exchange{lost, first}, "the retry got %s, %s after the request: the client cannot know whether it was executed",
			first.told(), time.Since(began).Round(time.Second/10))
	}
	p.sameAgain("the same request again", r, first, lost)
}

// lostAnswer cuts the connection at several moments: when the answer arrives, within its header,
// in the middle, and before its last byte. Without a count all moments are tried, too.
func lostAnswer(p *probe) {
	sample := p.send("the request, to know how long the answer is", p.fresh())
	for _, bytes := range []int{0, 1, len(sample.Response) / 2, len(sample.Response) - 1} {
		once := func() {
			r := p.fresh()
			lost, err := p.cut(r, bytes)
			p.must(err)
			if lost.status == 0 {
				p.again(r, lost)
			} else if p.cfg.Count != nil {
				p.undecided("the answer arrived before the connection was cut: it is shorter than %d bytes", bytes)
			}
		}
		if p.cfg.Count == nil {
			once()
		} else {
			p.counted(once)
		}
	}
	if p.cfg.Count == nil {
		p.undecided(uncounted)
	}
}

// cut sends a request through a proxy, which cuts the connection after so many bytes of the
// answer.
func (p *probe) cut(r Request, bytes int) (Exchange, error) {
	u, err := url.Parse(r.URL)
	if err != nil {
		return Exchange{}, err
	}
	line, err := faultproxy.Open(address(u))
	if err != nil {
		return Exchange{}, err
	}
	defer func() { _ = line.Close() }()
	through := newTransport(p.cfg)
	through.Proxy = nil
	through.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
		conn, err := dial(ctx, u, line.Addr, p.cfg.Insecure)
		if err != nil {
			return nil, err
		}
		return conn, line.Cut(bytes)
	}
	through.DialTLSContext = through.DialContext
	return p.sendBy("the request, whose answer is lost on the way", r, way{transport: through}), nil
}

// dial connects to addr as the scheme of u asks.
func dial(ctx context.Context, u *url.URL, addr string, insecure bool) (net.Conn, error) {
	if u.Scheme != "https" {
		return new(net.Dialer).DialContext(ctx, "tcp", addr)
	}
	// TLS 1.3 sends tickets after its handshake: they would count as bytes of the answer, and
	// closing a connection with unread bytes resets it.
	config := &tls.Config{ServerName: u.Hostname(), MinVersion: tls.VersionTLS12, MaxVersion: tls.VersionTLS12,
		InsecureSkipVerify: insecure} //nolint:gosec // the user's --insecure
	return (&tls.Dialer{Config: config}).DialContext(ctx, "tcp", addr)
}

// address is the host and port of a URL.
func address(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	return net.JoinHostPort(u.Hostname(), port)
}

// parts and betweenParts make a slow client: it needs almost a second for its body.
const (
	parts        = 4
	betweenParts = 250 * time.Millisecond
)

func slowClient(p *probe) {
	p.counted(func() {
		r := p.fresh()
		first := p.sendBy("the request, sent slowly", r, way{body: slowly})
		switch {
		case first.status == 0 || first.busy(): // it was too slow for the server, and its retry is not
			p.again(r, first)
		case !first.succeeded():
			p.broken([]Exchange{first}, "a client that sends slowly got %s", first.told())
		default:
			p.sameAgain("the same request again", r, first)
		}
	})
}

// slowly returns a reader of the body that pauses between its parts.
func slowly(ctx context.Context, body string) io.Reader {
	reader, writer := io.Pipe()
	context.AfterFunc(ctx, func() { _ = reader.CloseWithError(ctx.Err()) })
	go func() {
		size := max(1, len(body)/parts)
		for len(body) > 0 {
			n := min(size, len(body))
			if _, err := io.Copy(writer, strings.NewReader(body[:n])); err != nil {
				return
			}
			if body = body[n:]; wait.Pause(ctx, betweenParts) != nil {
				return
			}
		}
		_ = writer.Close()
	}()
	return reader
}

func clientLeaves(p *probe) {
	p.counted(func() {
		r := p.fresh()
		left := p.sendBy("the request, whose client leaves when it has sent it", r, way{transport: leaver{p.cfg.Insecure}})
		p.pause(settling) // or the retry may overtake it
		p.again(r, left)
	})
}

// leaver sends a request, and closes the connection when the kernel has all of it. A canceled
// context would be no substitute: it may end net/http's Transport before the request has left its
// buffer.
type leaver struct{ insecure bool }

var errLeft = errors.New("the client left")

// RoundTrip implements [http.RoundTripper].
func (l leaver) RoundTrip(q *http.Request) (*http.Response, error) {
	conn, err := dial(q.Context(), q.URL, address(q.URL), l.insecure)
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close() }()
	if err := q.Write(conn); err != nil {
		return nil, err
	}
	return nil, errLeft
}
