package mailer

import (
	"context"
	"errors"
	"fmt"
	"net/mail"
	"net/url"
	"strconv"
	"strings"
	"time"

	gomail "github.com/wneessen/go-mail"
)

// mailTimeout bounds one mail, and making a connection. RFC 5321, section 4.5.3.2, allows a server
// minutes. One that needs longer than this gets copies, with the same Message-ID.
const mailTimeout = 20 * time.Second

// Codes of SMTP (RFC 5321, section 4.2.3).
const (
	codePermanent = 500
	// codeNoRoom is a permanent code for a state that passes: the mailbox is full.
	codeNoRoom = 552
)

// The schemes of a server's URL.
const (
	schemePlain    = "smtp"          // STARTTLS if the server offers it
	schemeStartTLS = "smtp+starttls" // with STARTTLS, or not at all
	schemeTLS      = "smtps"         // TLS from the first byte (RFC 8314)
)

// Server is a mail server and in whose name it is asked to send. Safe for concurrent use.
type Server struct {
	host     string
	port     int
	scheme   string
	user     string
	password string
	from     *mail.Address
}

// NewServer returns the server at a URL, scheme://user:password@host:port, that sends mails from an
// address such as "Shop <shop@example.com>". The scheme is smtp, smtp+starttls or smtps. The error
// does not repeat the URL, which has a password.
func NewServer(rawURL, from string) (*Server, error) {
	u, err := url.Parse(rawURL)
	if err != nil || u.Hostname() == "" || u.Path != "" || u.RawQuery != "" {
		return nil, errors.New("MAIL_URL must be smtp://user:password@host:port, smtp+starttls://… or smtps://…")
	}
	s := &Server{host: u.Hostname(), scheme: u.Scheme, user: u.User.Username()}
	s.password, _ = u.User.Password()
	ports := map[string]int{schemePlain: 25, schemeStartTLS: 587, schemeTLS: 465}
	if s.port = ports[u.Scheme]; s.port == 0 {
		return nil, errors.New("MAIL_URL must begin with smtp://, smtp+starttls:// or smtps://")
	}
	if u.Port() != "" {
		if s.port, err = strconv.Atoi(u.Port()); err != nil || s.port < 1 || s.port > 65535 {
			return nil, errors.New("MAIL_URL has a port that is none")
		}
	}
	if s.from, err = mail.ParseAddress(from); err != nil {
		return nil, errors.New("MAIL_FROM must be an address such as Shop <shop@example.com>")
	}
	return s, nil
}

// Host is the server's name or address.
func (s *Server) Host() string { return s.host }

// RequiresTLS says whether no mail leaves without TLS and a certificate of the server's name.
func (s *Server) RequiresTLS() bool { return s.scheme != schemePlain }

// domain makes Message-IDs ours.
func (s *Server) domain() string {
	return s.from.Address[strings.LastIndexByte(s.from.Address, '@')+1:]
}

func (s *Server) options() []gomail.Option {
	// A connection that broke is noticed by the mail, too: no NOOP before each.
	options := []gomail.Option{gomail.WithPort(s.port), gomail.WithTimeout(mailTimeout), gomail.WithoutNoop()}
	switch s.scheme {
	case schemePlain:
		options = append(options, gomail.WithTLSPolicy(gomail.TLSOpportunistic))
	case schemeStartTLS:
		options = append(options, gomail.WithTLSPolicy(gomail.TLSMandatory))
	case schemeTLS:
		options = append(options, gomail.WithSSL())
	}
	if s.user != "" { // without TLS only mechanisms that do not send the password
		options = append(options, gomail.WithSMTPAuth(gomail.SMTPAuthAutoDiscover), gomail.WithUsername(s.user), gomail.WithPassword(s.password))
	}
	return options
}

// session is a connection to a server.
type session struct {
	server *Server
	client *gomail.Client
}

func (s *Server) dial(ctx context.Context) (*session, error) {
	client, err := gomail.NewClient(s.host, s.options()...)
	if err != nil {
		return nil, err
	}
	if err := client.DialWithContext(ctx); err != nil {
		return nil, err
	}
	return &session{s, client}, nil
}

// close is polite; a server that does not answer does not count.
func (s *session) close() { _ = s.client.Close() }

// send sends a mail. It returns an error if the connection is of no more use.
func (s *session) send(m Mail) (Outcome, error) {
	message := s.server.message(m)
	err := s.client.Send(message)
	if message.IsDelivered() { // even if the server does not answer what comes after
		return Outcome{Verdict: Sent}, err
	}
	return judge(err)
}

// judge sorts an answer. A final one is about this mail: its recipient or its content. Whatever
// else went wrong is the server's trouble, or an answer that was lost; then the mail may have
// arrived.
func judge(err error) (Outcome, error) {
	var failed *gomail.SendError
	if !errors.As(err, &failed) {
		return Outcome{Verdict: PutOff, Reason: "the connection broke"}, fmt.Errorf("send a mail: %w", err)
	}
	// Not the error's text: it repeats the customer's address.
	code, at := failed.ErrorCode(), failed.Reason.String()
	reason := strings.TrimSpace(fmt.Sprintf("%s: the server answered %d %s", at, code, failed.EnhancedStatusCode()))
	if code == 0 {
		reason = at + ": no answer"
	}
	aboutMail := failed.Reason == gomail.ErrSMTPRcptTo || failed.Reason == gomail.ErrSMTPDataClose
	switch {
	case failed.Reason == gomail.ErrGetRcpts: // it was accepted as an address before
		return Outcome{Verdict: Refused, Reason: "the customer's address is none"}, nil
	case aboutMail && code >= codePermanent && code != codeNoRoom:
		return Outcome{Verdict: Refused, Reason: reason}, nil
	case aboutMail && code != 0:
		return Outcome{Verdict: PutOff, Reason: reason}, nil
	}
	return Outcome{Verdict: PutOff, Reason: reason}, errors.New(reason)
}
