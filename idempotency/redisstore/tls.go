package redisstore

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
)

// tlsConfig sets no server name: each certificate must match the address that is dialed.
func (a *address) tlsConfig() (*tls.Config, error) {
	caFile, certFile, keyFile := a.take("ca_file"), a.take("cert_file"), a.take("key_file")
	if !a.tls {
		if caFile != "" || certFile != "" || keyFile != "" {
			return nil, errors.New("ca_file, cert_file and key_file need rediss://")
		}
		return nil, nil
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if caFile != "" {
		roots, err := readRoots(caFile)
		if err != nil {
			return nil, fmt.Errorf("ca_file: %w", err)
		}
		config.RootCAs = roots
	}
	if certFile != "" || keyFile != "" {
		own, err := tls.LoadX509KeyPair(certFile, keyFile)
		if err != nil {
			return nil, fmt.Errorf("cert_file and key_file: %w", err)
		}
		config.Certificates = []tls.Certificate{own}
	}
	return config, nil
}

func readRoots(path string) (*x509.CertPool, error) {
	pem, err := os.ReadFile(path) //nolint:gosec // the operator names it
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("%s holds no PEM certificate", path)
	}
	return roots, nil
}
