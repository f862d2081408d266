package testenv

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/internal/localserver"
)

// RedisTLS starts a server for this test alone whose URL, rediss://…?ca_file=…, is encrypted with a
// certificate of the test's own authority. At its Addr it also answers in the clear. It is a
// process in any case.
func RedisTLS(t testing.TB) *Server {
	t.Helper()
	server, _ := redisTLS(t)
	return server
}

// RedisMutualTLS is RedisTLS for clients with a certificate alone, which its URL names, too.
func RedisMutualTLS(t testing.TB) *Server {
	t.Helper()
	server, certificate := redisTLS(t, "--tls-auth-clients", "yes")
	server.URL += "&cert_file=" + certificate + "&key_file=" + certificate
	return server
}

func redisTLS(t testing.TB, settings ...string) (server *Server, certificate string) {
	t.Helper()
	port, certificate := pickPort(t), newCertificate(t)
	server = newServer(t, localserver.Redis, localserver.Config{Settings: append(tlsSettings(port, certificate), settings...)})
	server.URL = "rediss://127.0.0.1:" + port + "/0?ca_file=" + certificate
	return server, certificate
}

// tlsSettings have a server listen for TLS on this port, besides the one in the clear.
func tlsSettings(port, certificate string) []string {
	return []string{
		"--tls-port", port, "--tls-cert-file", certificate, "--tls-key-file", certificate,
		"--tls-ca-cert-file", certificate, "--tls-auth-clients", "no",
	}
}

// pickPort returns a port that a server takes besides its own. It is held until the test ends.
func pickPort(t testing.TB) string {
	t.Helper()
	port, err := localserver.HoldPort(0)
	require.NoError(t, err)
	t.Cleanup(port.Release)
	return strconv.Itoa(port.Number)
}

// newCertificate returns the path of a file with a certificate for 127.0.0.1, which is its own
// authority, and its key.
func newCertificate(t testing.TB) string {
	t.Helper()
	dir, err := makeDir()
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	public, private, keyErr := ed25519.GenerateKey(nil)
	template := &x509.Certificate{
		Subject: pkix.Name{CommonName: "oncepay test"}, NotAfter: time.Now().Add(24 * time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
	}
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, public, private)
	key, encodeErr := x509.MarshalPKCS8PrivateKey(private)
	require.NoError(t, errors.Join(keyErr, err, encodeErr))
	var text bytes.Buffer
	require.NoError(t, pem.Encode(&text, &pem.Block{Type: "CERTIFICATE", Bytes: certificate}))
	require.NoError(t, pem.Encode(&text, &pem.Block{Type: "PRIVATE KEY", Bytes: key}))
	path := filepath.Join(dir, "certificate.pem")
	// The server may run as another user.
	require.NoError(t, errors.Join(os.Chmod(dir, 0o755), os.WriteFile(path, text.Bytes(), 0o644)))
	return path
}
