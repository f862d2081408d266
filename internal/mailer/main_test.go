package mailer

import (
	"crypto/tls"
	"encoding/pem"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"go.uber.org/goleak"
)

// trusted has a certificate of 127.0.0.1 that this process trusts.
var trusted *tls.Config

func TestMain(m *testing.M) {
	server := httptest.NewTLSServer(nil)
	trusted = &tls.Config{Certificates: server.TLS.Certificates, MinVersion: tls.VersionTLS12}
	certificate := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	server.Close()
	dir, err := os.MkdirTemp("", "mailer")
	if err != nil {
		panic(err)
	}
	roots := filepath.Join(dir, "roots.pem")
	if err := os.WriteFile(roots, certificate, 0o600); err != nil {
		panic(err)
	}
	_ = os.Setenv("SSL_CERT_FILE", roots) // before crypto/x509 reads the system's
	goleak.VerifyTestMain(m, goleak.Cleanup(func(status int) {
		_ = os.RemoveAll(dir)
		os.Exit(status)
	}))
}
