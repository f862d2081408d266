package oncecheck

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"
)

const usage = `usage: oncecheck [FLAGS] [curl] [CURL'S FLAGS] URL
       oncecheck [FLAGS] FILE.http[#NAME]
       oncecheck [FLAGS] OPENAPI.yaml#OPERATION, or the document's URL
       oncecheck --rules [NAME]

Sends a request that changes something in the ways in which retries happen, and says which rules of
idempotency keys the API holds. {{unique}} in the URL, a header or the body is replaced by a text that
no other request has. The exit status is 0 if no rule is broken, 1 if one is, and 2 if nothing could be
found out.

`

// The exit statuses.
const (
	statusHolds  = 0
	statusBroken = 1
	statusBad    = 2
)

// settings are what the arguments say.
type settings struct {
	cfg                 Config
	body                []string // parts, as curl's -d takes them
	count, countCommand string
	countSQL, database  string
	between, only       string
	server              string
	parameters          map[string]string
	page, badge         string
	rules, quiet, yes   bool
	json                bool
}

// Main is the program: args are without its name. It returns the exit status.
func Main(ctx context.Context, args []string, in io.Reader, out, errOut io.Writer) int {
	status, err := run(ctx, args, in, out, errOut)
	if errors.Is(err, flag.ErrHelp) {
		return statusHolds
	}
	if err != nil {
		_, _ = fmt.Fprintln(errOut, "oncecheck:", err)
		return statusBad
	}
	return status
}

func run(ctx context.Context, args []string, in io.Reader, out, errOut io.Writer) (int, error) {
	s, words, err := parseArguments(args, out)
	if err != nil {
		return 0, err
	}
	if s.rules {
		return statusHolds, printRules(out, words)
	}
	for _, prepare := range []func() error{
		func() error { return s.takeWords(words) },
		s.cfg.check,
		s.setCommands,
		func() error { return s.mayChange(in, out) },
		s.openFiles,
	} {
		if err := prepare(); err != nil {
			return 0, err
		}
	}
	stop := s.showProgress(errOut)
	report, err := Run(ctx, s.cfg)
	stop()
	if err != nil {
		return 0, err
	}
	if err := s.write(report, out); err != nil {
		return 0, err
	}
	switch {
	case report.Count(Broken) > 0:
		return statusBroken, nil
	case report.Count(Holds) == 0:
		return 0, errors.New("no rule was decided; the report says what is missing")
	}
	return statusHolds, nil
}

// parseArguments reads flags from anywhere among the words, and returns the words.
func parseArguments(args []string, out io.Writer) (*settings, []string, error) {
	s := &settings{cfg: Config{OtherCaller: http.Header{}}, parameters: map[string]string{}}
	flags := flag.NewFlagSet("oncecheck", flag.ContinueOnError)
	flags.SetOutput(io.Discard) // an error is printed once, by Main
	s.curlFlags(flags)
	flags.StringVar(&s.cfg.KeyHeader, "key-header", DefaultKeyHeader, "the `name` of the header with the key")
	flags.BoolVar(&s.cfg.UUIDKeys, "uuid-keys", false, "send UUIDs as keys, for an API that takes no others")
	flags.StringVar(&s.cfg.OtherBody, "other-body", "", "a `body` with another meaning (default: a number or a text of the JSON body is changed)")
	flags.StringVar(&s.cfg.OtherURL, "other-url", "", "the `URL` of another operation at the same host, which takes the same body")
	flags.Func("other-header", "a `header` that makes the request another caller's, such as 'Authorization: Bearer …'; may be given again", header(s.cfg.OtherCaller))
	flags.StringVar(&s.server, "server", "", "the base `URL` of the operations of an OpenAPI document (default: its first server)")
	flags.Func("parameter", "a `NAME=VALUE` of an operation in an OpenAPI document, instead of its example; may be given again", s.parameter)
	flags.StringVar(&s.count, "count", "", "a `URL#PATH` that counts effects: GET it, and take the number or the length of the list at this path, such as items")
	flags.StringVar(&s.countCommand, "count-command", "", "a `command` that prints how many effects there are")
	flags.StringVar(&s.countSQL, "count-sql", "", "a `query` of PostgreSQL that returns how many effects there are")
	flags.StringVar(&s.database, "database", os.Getenv("DATABASE_URL"), "the `URL` of the database for --count-sql (default $DATABASE_URL)")
	flags.StringVar(&s.between, "between", "", "a `command` that disturbs the service between a request and its retry, such as redis-cli flushall")
	flags.StringVar(&s.only, "only", "", "check these `rules` alone, such as replay,other-body")
	flags.IntVar(&s.cfg.MaxRequests, "max-requests", DefaultMaxRequests, "send no more `requests`")
	flags.IntVar(&s.cfg.Rate, "rate", DefaultRate, "`requests` per second, except those that have to be sent at once")
	flags.DurationVar(&s.cfg.Attempt, "attempt", DefaultAttempt, "wait so `long` for an answer")
	flags.DurationVar(&s.cfg.Patience, "patience", DefaultPatience, "repeat a request for so `long`")
	flags.BoolVar(&s.rules, "rules", false, "list the rules, or print the page of one")
	flags.BoolVar(&s.quiet, "quiet", false, "print the rules that are broken, and the sum")
	flags.BoolVar(&s.json, "json-report", false, "print the report as JSON")
	flags.StringVar(&s.page, "page", "", "also write the report into an HTML `file`")
	flags.StringVar(&s.badge, "badge", "", "also write an SVG `file` with the result")
	flags.BoolVar(&s.yes, "yes", false, "do not ask before requests are sent to another machine")
	var words []string
	for rest := expand(args); len(rest) > 0; {
		err := flags.Parse(rest)
		if errors.Is(err, flag.ErrHelp) {
			flags.SetOutput(out)
			_, _ = fmt.Fprint(out, usage, "Flags:\n")
			flags.PrintDefaults()
			return nil, nil, flag.ErrHelp
		}
		if err != nil {
			return nil, nil, fmt.Errorf("%w; --help lists the flags", err)
		}
		if rest = flags.Args(); len(rest) > 0 {
			words, rest = append(words, rest[0]), rest[1:]
		}
	}
	return s, words, s.checkFlags()
}

func (s *settings) checkFlags() error {
	if s.cfg.MaxRequests < 1 || s.cfg.Rate < 1 || s.cfg.Attempt < time.Millisecond || s.cfg.Patience < time.Millisecond {
		return errors.New("--max-requests, --rate, --attempt and --patience have to be positive")
	}
	if s.only != "" {
		s.cfg.Only = strings.Split(s.only, ",")
	}
	return nil
}

// header returns a flag's function, which adds "Name: value" to a header.
func header(to http.Header) func(string) error {
	return func(line string) error {
		name, value, ok := strings.Cut(line, ":")
		if name = strings.TrimSpace(name); !ok || name == "" {
			return fmt.Errorf("a header has to be like 'Name: value', and is %q", line)
		}
		to.Add(name, strings.TrimSpace(value))
		return nil
	}
}

// takeWords reads the words that are no flags: the URL, or a file.
func (s *settings) takeWords(words []string) error {
	if len(words) > 0 && words[0] == "curl" {
		words = words[1:]
	}
	if s.cfg.Request.URL != "" { // curl's --url
		words = append(words, s.cfg.Request.URL)
	}
	switch {
	case len(words) == 0:
		return errors.New("name the URL of a request that changes something; --help says how")
	case len(words) > 1:
		return fmt.Errorf("there is one URL or file too many: %q", words)
	}
	switch file, name, _ := strings.Cut(words[0], "#"); {
	case strings.HasSuffix(file, ".http"):
		return s.takeFile(file, name)
	case isDocument(words[0]):
		return s.takeDocument(file, name)
	}
	if s.cfg.Request.URL = words[0]; !strings.Contains(words[0], "://") {
		s.cfg.Request.URL = "http://" + words[0] // as curl does
	}
	s.setBody()
	return nil
}
