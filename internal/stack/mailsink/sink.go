// Package mailsink is a mail server for development: it takes every mail by SMTP, delivers none,
// and lists them over HTTP. Mails are lines of a file, written before a mail is accepted, so that
// SIGKILL loses none.
//
// Recipients make it misbehave: nobody…@… is refused for good, later…@… is refused for now.
//
//	GET /v1/mails?about=<text>&limit=<n>  the newest mails that contain the text, the newest last;
//	                                      100 without a limit
//	PUT, DELETE /v1/full                  there is no room from now on, or again
package mailsink

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/emersion/go-message"
	"github.com/emersion/go-smtp"
	"golang.org/x/sync/errgroup"

	"github.com/oncepay/oncepay/internal/localhost"
)

const (
	// maxMail bounds one mail.
	maxMail = 1 << 20
	// timeout bounds each command, and how long a client may be idle.
	timeout = time.Minute
)

// The answers (RFC 5321, section 4.2.3; RFC 3463).
var (
	errNoRoom = &smtp.SMTPError{Code: 452, EnhancedCode: smtp.EnhancedCode{4, 3, 1}, Message: "no room for mails"}
	errNobody = &smtp.SMTPError{Code: 550, EnhancedCode: smtp.EnhancedCode{5, 1, 1}, Message: "nobody of this name"}
	errLater  = &smtp.SMTPError{Code: 450, EnhancedCode: smtp.EnhancedCode{4, 2, 1}, Message: "come again later"}
	errNoMail = &smtp.SMTPError{Code: 554, EnhancedCode: smtp.EnhancedCode{5, 6, 0}, Message: "this is no mail"}
)

// Mail is a mail that was accepted.
type Mail struct {
	MessageID string    `json:"message_id"` // without its brackets
	To        string    `json:"to"`         // the header
	Recipient string    `json:"recipient"`  // of the envelope
	Subject   string    `json:"subject"`
	Text      string    `json:"text"`
	Received  time.Time `json:"received"`
}

// Sink is a mail server. Safe for concurrent use.
type Sink struct {
	mu    sync.Mutex
	file  *os.File
	size  int64 // of the mails in the file
	mails []Mail

	Full atomic.Bool // there is no room, which mails are refused for
}

// Open opens the sink whose mails are in a file, which is created if absent. A torn last mail
// does not count, and is written over: it was not accepted.
func Open(path string) (*Sink, error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the mails: %w", err)
	}
	s := &Sink{file: file, mails: []Mail{}}
	text, err := io.ReadAll(file)
	for line := range bytes.Lines(text[:bytes.LastIndexByte(text, '\n')+1]) {
		var m Mail
		err = errors.Join(err, json.Unmarshal(line, &m))
		s.mails, s.size = append(s.mails, m), s.size+int64(len(line))
	}
	return s, errors.Join(err, file.Truncate(s.size))
}

// Close releases the file.
func (s *Sink) Close() error { return s.file.Close() }

// Run runs the sink whose mails are in a file, which takes mails and lists them at two addresses
// (host:port), until the context ends.
func Run(ctx context.Context, mails, lists, file string) error {
	sink, err := Open(file)
	if err != nil {
		return err
	}
	defer func() { _ = sink.Close() }()
	var listen net.ListenConfig
	taking, err := listen.Listen(ctx, "tcp", mails)
	listing, failed := listen.Listen(ctx, "tcp", lists)
	if err := errors.Join(err, failed); err != nil { // both end with the process
		return err
	}
	return sink.Serve(ctx, taking, listing)
}

// Serve takes mails at one listener and lists them at the other, until the context ends. It closes
// both.
func (s *Sink) Serve(ctx context.Context, mails, lists net.Listener) error {
	server := smtp.NewServer(smtp.BackendFunc(func(*smtp.Conn) (smtp.Session, error) { return &session{sink: s}, nil }))
	server.Domain, server.MaxMessageBytes, server.MaxRecipients = "mailsink", maxMail, 1
	server.ReadTimeout, server.WriteTimeout, server.EnableSMTPUTF8 = timeout, timeout, true
	web := &http.Server{Handler: localhost.Guard(s.routes()), ReadHeaderTimeout: timeout}
	serving, ended := errgroup.WithContext(ctx)
	serving.Go(func() error { return server.Serve(mails) })
	serving.Go(func() error { return web.Serve(lists) })
	<-ended.Done()
	_, _ = server.Close(), web.Close()  // they have nothing that is not in the file
	_, _ = mails.Close(), lists.Close() // a server that is closed before it serves knows no listener
	if err := serving.Wait(); ctx.Err() == nil {
		return fmt.Errorf("serve mails: %w", err)
	}
	return nil
}

// add writes a mail at once, before it is accepted.
func (s *Sink) add(m Mail) error {
	if s.Full.Load() {
		return errNoRoom
	}
	line, err := json.Marshal(m)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	line = append(line, '\n')
	if _, err := s.file.WriteAt(line, s.size); err != nil { // the next mail is written over its rest
		return errNoRoom
	}
	s.mails, s.size = append(s.mails, m), s.size+int64(len(line))
	return nil
}

// List returns the last mails with a text; a limit of 0 returns all.
func (s *Sink) List(about string, limit int) []Mail {
	s.mu.Lock()
	mails := slices.Clone(s.mails)
	s.mu.Unlock()
	mails = slices.DeleteFunc(mails, func(m Mail) bool { return !strings.Contains(fmt.Sprint(m), about) })
	if limit > 0 {
		mails = mails[max(0, len(mails)-limit):]
	}
	return mails
}

func (s *Sink) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok\n") })
	mux.HandleFunc("GET /v1/mails", func(w http.ResponseWriter, r *http.Request) {
		limit, err := strconv.Atoi(cmp.Or(r.FormValue("limit"), "100"))
		if err != nil || limit < 0 {
			http.Error(w, "limit must be a number, or 0 for all", http.StatusBadRequest)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string][]Mail{"mails": s.List(r.FormValue("about"), limit)})
	})
	full := func(w http.ResponseWriter, r *http.Request) {
		s.Full.Store(r.Method == http.MethodPut)
		w.WriteHeader(http.StatusNoContent)
	}
	mux.HandleFunc("PUT /v1/full", full)
	mux.HandleFunc("DELETE /v1/full", full)
	return mux
}

// session is a client's.
type session struct {
	sink      *Sink
	recipient string
}

func (s *session) Mail(string, *smtp.MailOptions) error { return nil }

func (s *session) Rcpt(to string, _ *smtp.RcptOptions) error {
	switch {
	case strings.HasPrefix(to, "nobody"):
		return errNobody
	case strings.HasPrefix(to, "later"):
		return errLater
	}
	s.recipient = to
	return nil
}

func (s *session) Data(r io.Reader) error {
	m, err := message.Read(r)
	if err != nil {
		return errNoMail
	}
	text, err := io.ReadAll(m.Body)
	if err != nil {
		return errNoMail
	}
	decoded := func(header string) string {
		value, _ := m.Header.Text(header) // as it is, if it cannot be decoded
		return value
	}
	return s.sink.add(Mail{MessageID: strings.Trim(decoded("Message-ID"), "<>"), To: decoded("To"), Recipient: s.recipient,
		Subject: decoded("Subject"), Text: strings.ReplaceAll(string(text), "\r\n", "\n"), Received: time.Now().UTC()})
}

func (s *session) Reset() { s.recipient = "" }

func (s *session) Logout() error { return nil }
