package oncecheck

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/url"
	"regexp"
	"strings"
)

// trial are words in the names of hosts that nobody depends on.
var trial = regexp.MustCompile(`(?i)(^|[.-])(test|testing|sandbox|staging|stage|dev|development|local|localhost|internal|qa|uat|demo|preview|example|invalid)[0-9]*([.-]|$)`)

// mayChange returns nil if requests may be sent: to loopback without a question, to a host for
// trials if the user agrees, and to any other only with --yes.
func (s *settings) mayChange(in io.Reader, out io.Writer) error {
	u, err := url.Parse(s.cfg.Request.URL)
	if err != nil {
		return err
	}
	host := u.Hostname()
	if s.yes || isLoopback(host) {
		return nil
	}
	if address := net.ParseIP(host); !trial.MatchString(host) && (address == nil || !address.IsPrivate()) {
		return fmt.Errorf("%s looks like production, and up to %d requests that change something would be sent to it; "+
			"use a system for tests, or add --yes", host, s.cfg.MaxRequests)
	}
	_, _ = fmt.Fprintf(out, "Up to %d requests that change something will be sent to %s. Type yes to go on: ", s.cfg.MaxRequests, host)
	line, _ := bufio.NewReader(in).ReadString('\n')
	if !strings.HasSuffix(line, "\n") { // the terminal shows no end of the line
		_, _ = fmt.Fprintln(out)
	}
	if strings.TrimSpace(line) != "yes" {
		return fmt.Errorf("nothing was sent to %s; type yes, or add --yes", host)
	}
	return nil
}

func isLoopback(host string) bool {
	address := net.ParseIP(host)
	return host == "localhost" || (address != nil && (address.IsLoopback() || address.IsUnspecified()))
}
