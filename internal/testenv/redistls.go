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

	"github.com/oncepay/oncepay/internal/stack"
)

// RedisTLS starts a server for this test alone whose URL, rediss://…?ca_file=…, is encrypted with a certificate of the test's own
// authority. At its Addr it also answers in the clear. It is a process in any case.
func RedisTLS(t testing.TB) *Server {
	t.Helper()
	port, err := freePort()
	if err != nil {
		t.Fatalf("testenv: %v", err)
	}
	certificate, key := writeCertificate(t)
	server := nativeRedis(t, stack.RedisConfig{Settings: []string{
		"--tls-port", port, "--tls-cert-file", certificate, "--tls-key-file", key, "--tls-auth-clients", "no",
	}})
	server.URL = "rediss://127.0.0.1:" + port + "/0?ca_file=" + certificate
	return server
}

// writeCertificate makes a certificate for 127.0.0.1 that is its own authority, and returns the paths of the PEM files.
func writeCertificate(t testing.TB) (certificate, key string) {
	t.Helper()
	dir, err := os.MkdirTemp("", dirPrefix()+strconv.Itoa(os.Getpid())+"-")
	if err == nil {
		t.Cleanup(func() { _ = os.RemoveAll(dir) })
		err = os.Chmod(dir, 0o755) // the server may run as another user
	}
	if err != nil {
		t.Fatalf("testenv: %v", err)
	}
	certificate, key = filepath.Join(dir, "certificate.pem"), filepath.Join(dir, "key.pem")
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatalf("testenv: %v", err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "oncepay test"}, NotAfter: time.Now().Add(24 * time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
	}
	public, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		t.Fatalf("testenv: %v", err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatalf("testenv: %v", err)
	}
	writePEM(t, certificate, "CERTIFICATE", public)
	writePEM(t, key, "PRIVATE KEY", secret)
	return certificate, key
}

func writePEM(t testing.TB, path, kind string, content []byte) {
	t.Helper()
	if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: content}), 0o644); err != nil {
		t.Fatalf("testenv: %v", err)
	}
}
