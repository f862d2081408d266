package mailer

import (
	"io"
	"net"
	"sync/atomic"
	"testing"

	"github.com/emersion/go-sasl"
	"github.com/emersion/go-smtp"
	"github.com/stretchr/testify/require"
)

// account is a server that takes mails of its user alone, after STARTTLS.
type account struct{ accepted atomic.Int64 }

// visit is a connection to it.
type visit struct {
	*account
	known bool
}

func (v *visit) AuthMechanisms() []string { return []string{sasl.Plain} }

func (v *visit) Auth(string) (sasl.Server, error) {
	return sasl.NewPlainServer(func(_, user, password string) error {
		if v.known = user == "shop" && password == "secret"; !v.known {
			return smtp.ErrAuthFailed
		}
		return nil
	}), nil
}

func (v *visit) Mail(string, *smtp.MailOptions) error {
	if !v.known {
		return smtp.ErrAuthRequired
	}
	return nil
}

func (v *visit) Rcpt(string, *smtp.RcptOptions) error { return nil }

func (v *visit) Data(r io.Reader) error {
	v.accepted.Add(1)
	_, err := io.Copy(io.Discard, r)
	return err
}

func (v *visit) Reset()        {}
func (v *visit) Logout() error { return nil }

// openAccount returns the port of one, whose certificate is of 127.0.0.1 alone; TestMain trusts it.
func openAccount(t *testing.T) (*account, string) {
	t.Helper()
	a := &account{}
	server := smtp.NewServer(smtp.BackendFunc(func(*smtp.Conn) (smtp.Session, error) { return &visit{account: a}, nil }))
	server.Domain, server.TLSConfig = "127.0.0.1", trusted
	listener := listen(t)
	ended := make(chan struct{})
	go func() { defer close(ended); _ = server.Serve(listener) }()
	t.Cleanup(func() { _, _ = server.Close(), listener.Close(); <-ended })
	_, port, err := net.SplitHostPort(listener.Addr().String())
	require.NoError(t, err)
	return a, port
}

func TestMailer_LogsInOverTLS(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ login, host, fails string }{
		"with its password":       {"shop:secret", "127.0.0.1", ""},
		"with another password":   {"shop:guess", "127.0.0.1", "535"},
		"without a login":         {"", "127.0.0.1", "the server answered 502"},
		"at a server of any name": {"shop:secret", "localhost", "certificate"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a, port := openAccount(t)
			p := setup(t, "ada@example.com")
			p.connect("smtp+starttls://" + c.login + "@" + c.host + ":" + port)
			_, err := p.RunOnce(t.Context())
			if c.fails == "" {
				require.NoError(t, err)
				require.EqualValues(t, 1, a.accepted.Load())
				require.Equal(t, []Verdict{Sent}, p.verdicts())
				return
			}
			require.ErrorContains(t, err, c.fails)
			require.NotContains(t, err.Error(), "secret")
			require.NotContains(t, err.Error(), "guess")
			require.Zero(t, a.accepted.Load())
			require.NotEqual(t, []Verdict{Refused}, p.verdicts(), "the mail waits")
		})
	}
}
