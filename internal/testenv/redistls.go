package testenv

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
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
	return redisTLS(t, newKeyPair(t), "")
}

// RedisMutualTLS is RedisTLS for clients with a certificate alone, which its URL names, too.
func RedisMutualTLS(t testing.TB) *Server {
	t.Helper()
	pair := newKeyPair(t)
	return redisTLS(t, pair, "&cert_file="+pair.certificate+"&key_file="+pair.key, "--tls-auth-clients", "yes")
}

func redisTLS(t testing.TB, pair keyPair, query string, settings ...string) *Server {
	t.Helper()
	port := pickPort(t)
	server := nativeRedis(t, localserver.Config{Settings: append(pair.settings(port), settings...)})
	server.URL = "rediss://127.0.0.1:" + port + "/0?ca_file=" + pair.certificate + query
	return server
}

// keyPair are the paths of a certificate for 127.0.0.1, which is its own authority, and of its key.
type keyPair struct{ certificate, key string }

// settings have a server listen for TLS on this port, besides the one in the clear.
func (p keyPair) settings(port string) []string {
	return []string{
		"--tls-port", port, "--tls-cert-file", p.certificate, "--tls-key-file", p.key,
		"--tls-ca-cert-file", p.certificate, "--tls-auth-clients", "no",
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

func newKeyPair(t testing.TB) keyPair {
	t.Helper()
	dir, err := makeDir()
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	require.NoError(t, os.Chmod(dir, 0o755)) // the server may run as another user
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "oncepay test"}, NotAfter: time.Now().Add(24 * time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
	}
	public, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	require.NoError(t, err)
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	require.NoError(t, err)
	write := func(name, kind string, content []byte) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: content}), 0o644))
		return path
	}
	return keyPair{certificate: write("certificate.pem", "CERTIFICATE", public), key: write("key.pem", "PRIVATE KEY", secret)}
}
