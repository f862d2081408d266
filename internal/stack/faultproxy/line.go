package faultproxy

import (
	"fmt"
	"io"
	"strings"

	toxiproxy "github.com/Shopify/toxiproxy/v2"
)

// Line is a proxy in front of one server that belongs to no stack. Safe for concurrent use.
type Line struct {
	Addr string // where it listens, on loopback

	server *toxiproxy.ApiServer
	proxy  *toxiproxy.Proxy
}

// Open begins to listen on a free port of loopback, and passes connections on to upstream
// (host:port). The caller closes it.
func Open(upstream string) (*Line, error) {
	server := newToxiproxy(io.Discard)
	proxy := toxiproxy.NewProxy(server, "line", "127.0.0.1:0", upstream)
	if err := server.Collection.Add(proxy, true); err != nil {
		return nil, fmt.Errorf("listen for %s: %w", upstream, err)
	}
	return &Line{Addr: proxy.Listen, server: server, proxy: proxy}, nil
}

// Cut ends each connection after so many more bytes of answers. With 0 bytes it ends when an
// answer arrives, which is then lost. Call it once.
func (l *Line) Cut(bytes int) error {
	toxic := fmt.Sprintf(`{"name":"cut","type":"limit_data","stream":"downstream","attributes":{"bytes":%d}}`, bytes)
	_, err := l.proxy.Toxics.AddToxicJson(strings.NewReader(toxic))
	return err
}

// Close ends the proxy and its connections.
func (l *Line) Close() error { return l.server.Collection.Clear() }
