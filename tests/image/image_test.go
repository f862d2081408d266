// Package image_test looks at containers from the outside: the image of the service, and the stack
// of docker compose. It needs a Docker engine, whose containers reach this machine; .ci/run runs it
// in the step "containers".
package image_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
)

// patience bounds a test: the program may have to be compiled.
const patience = 5 * time.Minute

// docker runs a command of the engine, and returns what it printed.
func docker(ctx context.Context, args ...string) (string, error) {
	out, err := exec.CommandContext(ctx, "docker", args...).CombinedOutput()
	return string(out), err
}

// build makes the image as `task image` does, under a name of its own.
func build(ctx context.Context, t *testing.T) (image string) {
	t.Helper()
	dir := t.TempDir()
	compile := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags=-s -w", "-o", dir, "./cmd/oncepay", "./cmd/pspsim", "./cmd/stack")
	compile.Dir, compile.Env = "../..", append(os.Environ(), "CGO_ENABLED=0")
	out, err := compile.CombinedOutput()
	require.NoError(t, err, string(out))
	image = "oncepay-test:" + uuid.NewString()
	text, err := docker(ctx, "build", "--file", "../../Dockerfile.prebuilt", "--tag", image, dir)
	require.NoError(t, err, text)
	t.Cleanup(func() { _, _ = docker(context.WithoutCancel(ctx), "image", "rm", "--force", image) })
	return image
}

// authority makes a certificate authority and a server's certificate for 127.0.0.1.
func authority(t *testing.T) (file string, server tls.Certificate) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	ca := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"}, NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	raw, err := x509.CreateCertificate(rand.Reader, ca, ca, key.Public(), key)
	require.NoError(t, err)
	file = filepath.Join(t.TempDir(), "authority.pem")
	require.NoError(t, os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: raw}), 0o644))
	return file, tls.Certificate{Certificate: [][]byte{raw}, PrivateKey: key}
}

// database accepts connections as PostgreSQL does, and tells how each handshake of TLS ended. What
// the client says afterwards is not answered.
func database(t *testing.T, certificate tls.Certificate) (addr string, handshakes <-chan error) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	ended := make(chan error, 100)
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			_, err = io.ReadFull(conn, make([]byte, 8)) // SSLRequest
			if err == nil {
				_, err = conn.Write([]byte("S"))
			}
			if err == nil {
				secured := tls.Server(conn, &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12})
				if err = secured.Handshake(); err == nil {
					_, err = secured.Read(make([]byte, 1)) // with TLS 1.3 a client refuses after the server's handshake
				}
			}
			_ = conn.Close()
			ended <- err
		}
	}()
	return listener.Addr().String(), ended
}

func TestImage_OfTheService(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	image := build(ctx, t)
	t.Run("has the service alone", func(t *testing.T) { hasTheServiceAlone(ctx, t, image) })
	t.Run("verifies TLS", func(t *testing.T) { verifiesTLS(ctx, t, image) })
}

// hasTheServiceAlone: what is not there cannot be used by an intruder.
func hasTheServiceAlone(ctx context.Context, t *testing.T, image string) {
	t.Helper()
	container, err := docker(ctx, "create", image)
	require.NoError(t, err, container)
	id := strings.TrimSpace(container)
	t.Cleanup(func() { _, _ = docker(context.WithoutCancel(ctx), "rm", "--force", id) })
	file := filepath.Join(t.TempDir(), "image.tar")
	text, err := docker(ctx, "export", "--output", file, id)
	require.NoError(t, err, text)
	listed, err := exec.CommandContext(ctx, "tar", "--list", "--file", file).Output()
	require.NoError(t, err)
	var programs []string
	for name := range strings.FieldsSeq(string(listed)) {
		mount := slices.ContainsFunc([]string{".dockerenv", "dev/", "etc/", "proc/", "sys/"}, func(p string) bool { return strings.HasPrefix(name, p) })
		if !mount { // what the engine puts into each container
			programs = append(programs, name)
		}
	}
	require.Equal(t, []string{"oncepay"}, programs)
}

// verifiesTLS has a container connect to a server of an unknown authority, and then to one of an
// authority that it was told of.
func verifiesTLS(ctx context.Context, t *testing.T, image string) {
	t.Helper()
	file, certificate := authority(t)
	connect := func(options ...string) (said string, handshake error) {
		addr, handshakes := database(t, certificate)
		args := append([]string{"run", "--detach", "--network", "host", "--read-only", "--cap-drop", "ALL",
			"--env", "DATABASE_URL=postgres://a:b@" + addr + "/shop?sslmode=verify-full&connect_timeout=5"}, options...)
		started, err := docker(ctx, append(args, image, "migrate", "up")...)
		require.NoError(t, err, started)
		id := strings.TrimSpace(started)
		t.Cleanup(func() { _, _ = docker(context.WithoutCancel(ctx), "rm", "--force", id) })
		select {
		case handshake = <-handshakes:
		case <-ctx.Done():
			require.Fail(t, "no handshake was begun")
		}
		_, err = docker(ctx, "stop", id) // it would wait for its database; now it says why there is none
		require.NoError(t, err)
		said, err = docker(ctx, "logs", id)
		require.NoError(t, err)
		return said, handshake
	}
	// It knows authorities, and this one is none of them: without any it would say that.
	said, handshake := connect()
	require.Contains(t, said, "certificate signed by unknown authority")
	require.Error(t, handshake)

	said, handshake = connect("--volume", file+":/authority.pem:ro", "--env", "SSL_CERT_FILE=/authority.pem")
	require.NoError(t, handshake, said)
}
