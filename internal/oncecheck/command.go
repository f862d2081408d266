package oncecheck

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/pflag"
)

const usage = `usage: oncecheck [FLAGS] [curl] [CURL'S FLAGS] URL
       oncecheck [FLAGS] OPENAPI.yaml#OPERATION, or the document's URL
       oncecheck --rules [NAME]

Sends a request that changes something in the ways in which retries happen, and says which rules of
idempotency keys the API holds. {{unique}} in the URL, a header or the body is replaced by a text that
no other request has. The exit status is 0 if no rule is broken, 1 if one is, and 2 if nothing could be
found out.

Flags:
`

// settings are what the arguments say.
type settings struct {
	cfg                                Config
	url                                string // curl's --url
	between                            string
	countURL, countCommand, countQuery string
	database                           string // for countQuery
	server                             string // of an OpenAPI document
	parameters                         map[string]string
	page, badge                        string
	rules, quiet, yes, json            bool
}

// Main is the program: args are without its name. It returns the exit status.
func Main(ctx context.Context, args []string, in io.Reader, out, errOut io.Writer) int {
	broken, err := run(ctx, args, in, out, errOut)
	switch {
	case err != nil && !errors.Is(err, pflag.ErrHelp):
		_, _ = fmt.Fprintln(errOut, "oncecheck:", err)
		return 2
	case broken:
		return 1
	}
	return 0
}

func run(ctx context.Context, args []string, in io.Reader, out, errOut io.Writer) (broken bool, err error) {
	s, words, err := parseArguments(args, out)
	if err != nil {
		return false, err
	}
	if s.rules {
		return false, printRules(out, words)
	}
	if err := s.takeWords(words); err != nil {
		return false, err
	}
	if err := s.mayChange(in, out); err != nil {
		return false, err
	}
	file, _ := errOut.(*os.File)
	if info, err := file.Stat(); err == nil && info.Mode()&os.ModeCharDevice != 0 { // a terminal
		s.cfg.Progress = func(text string) { _, _ = fmt.Fprint(errOut, "\r\x1b[K"+text) }
	}
	report, err := Run(ctx, s.cfg)
	if err == nil {
		err = s.write(report, out)
	}
	if err == nil && report.Count(Broken)+report.Count(Holds) == 0 {
		err = errors.New("no rule was decided; the report says what is missing")
	}
	return report.Count(Broken) > 0, err
}

// parseArguments reads flags from anywhere among the words, and returns the words.
func parseArguments(args []string, out io.Writer) (*settings, []string, error) {
	s := &settings{cfg: Config{OtherCaller: http.Header{}}}
	flags := pflag.NewFlagSet("oncecheck", pflag.ContinueOnError)
	flags.SortFlags = false
	flags.Usage = func() { _, _ = fmt.Fprint(out, usage, flags.FlagUsages()) }
	s.curlFlags(flags)
	flags.StringVar(&s.cfg.KeyHeader, "key-header", "", "the `name` of the header with the key (default: the document's, or "+DefaultKeyHeader+")")
	flags.StringVar(&s.cfg.OtherBody, "other-body", "", "a `body` with another meaning (default: a number or a text of the JSON body is changed)")
	flags.StringVar(&s.cfg.OtherURL, "other-url", "", "the `URL` of another operation at the same host, which takes the same body")
	flags.Func("other-header", "a `header` that makes the request another caller's, such as 'Authorization: Bearer …'; may be given again", header(s.cfg.OtherCaller, ""))
	flags.StringVar(&s.server, "server", "", "the base `URL` of the operations of an OpenAPI document (default: its first server)")
	flags.StringToStringVar(&s.parameters, "parameter", nil, "a `NAME=VALUE` of an operation in an OpenAPI document, instead of its example; may be given again")
	flags.StringVar(&s.countURL, "count", "", "a `URL#PATH` that counts effects: GET it, and take the number or the length of the list at this path, such as items")
	flags.StringVar(&s.countCommand, "count-command", "", "a `command` that prints how many effects there are")
	flags.StringVar(&s.countQuery, "count-sql", "", "a `query` of PostgreSQL that returns how many effects there are")
	flags.StringVar(&s.database, "database", "", "the `URL` of the database for --count-sql (default: $DATABASE_URL)")
	flags.StringVar(&s.between, "between", "", "a `command` that disturbs the service between a request and its retry, such as redis-cli flushall")
	flags.StringSliceVar(&s.cfg.Only, "only", nil, "check these `rules` alone, such as replay,other-body")
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
	if err := flags.Parse(args); err != nil {
		return nil, nil, fmt.Errorf("%w; --help lists the flags", err)
	}
	if min(s.cfg.MaxRequests, s.cfg.Rate) < 1 || min(s.cfg.Attempt, s.cfg.Patience) < 1 {
		return nil, nil, errors.New("--max-requests, --rate, --attempt and --patience have to be positive")
	}
	return s, flags.Args(), nil
}

// curlFlags are those flags of curl that make a request, so that a curl command can be pasted.
// Those that only change what curl prints or follows are accepted and do nothing.
func (s *settings) curlFlags(flags *pflag.FlagSet) {
	r := &s.cfg.Request
	r.Header = http.Header{}
	flags.StringVarP(&r.Method, "request", "X", "", "the `method` (default POST)")
	flags.StringVar(&s.url, "url", "", "the `URL`")
	flags.BoolVarP(&s.cfg.Insecure, "insecure", "k", false, "do not verify certificates")
	flags.FuncP("header", "H", "a `header`, such as 'Authorization: Bearer …'; may be given again", header(r.Header, ""))
	flags.FuncP("user-agent", "A", "the header `User-Agent`", header(r.Header, "User-Agent:"))
	flags.FuncP("cookie", "b", "the header `Cookie`", header(r.Header, "Cookie:"))
	flags.FuncP("referer", "e", "the header `Referer`", header(r.Header, "Referer:"))
	flags.FuncP("user", "u", "`USER:PASSWORD` of Basic authentication", func(text string) error {
		r.Header.Set("Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte(text)))
		return nil
	})
	flags.FuncP("data", "d", "the `body`, or @FILE", r.addBody)
	for _, same := range []string{"data-binary", "data-ascii", "json"} {
		flags.Func(same, "as --data", r.addBody)
	}
	flags.StringVar(&r.Body, "data-raw", "", "the `body`")
	for name, short := range map[string]string{"max-time": "m", "connect-timeout": "", "output": "o", "write-out": "w",
		"dump-header": "D", "trace": "", "trace-ascii": "", "max-redirs": ""} {
		flags.StringP(name, short, "", "")
		_ = flags.MarkHidden(name) // the flag is there
	}
	for name, short := range map[string]string{"silent": "s", "show-error": "S", "include": "i", "verbose": "v",
		"fail": "f", "fail-with-body": "", "location": "L", "compressed": "", "no-buffer": "N", "progress-bar": "#", "no-progress-meter": ""} {
		flags.BoolP(name, short, false, "")
		_ = flags.MarkHidden(name)
	}
}

// addBody adds to a body, as curl does.
func (r *Request) addBody(text string) error {
	if name, isFile := strings.CutPrefix(text, "@"); isFile {
		content, err := os.ReadFile(name) //nolint:gosec // the user names the file
		if err != nil {
			return fmt.Errorf("read the body: %w", err)
		}
		text = string(content)
	}
	r.Body = strings.TrimPrefix(r.Body+"&"+text, "&")
	return nil
}

// setType gives a body its type unless the user has: JSON its own, all others curl's.
func (r Request) setType() {
	switch {
	case r.Body == "" || r.Header.Get("Content-Type") != "":
	case json.Valid([]byte(r.Body)):
		r.Header.Set("Content-Type", "application/json")
	default:
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
}

// header returns a flag's function, which adds "Name: value" to a header. The name may come before.
func header(to http.Header, before string) func(string) error {
	return func(line string) error {
		name, value, ok := strings.Cut(before+line, ":")
		if name = strings.TrimSpace(name); !ok || name == "" {
			return fmt.Errorf("a header has to be like 'Name: value', and is %q", line)
		}
		to.Add(name, strings.TrimSpace(value))
		return nil
	}
}

// takeWords reads the words that are no flags: the URL, or an operation of a document.
func (s *settings) takeWords(words []string) error {
	words = slices.DeleteFunc(append(words, s.url), func(word string) bool { return word == "" || word == "curl" })
	if len(words) != 1 {
		return fmt.Errorf("name the URL of one request that changes something, and not %q; --help says how", words)
	}
	s.cfg.Request.URL = words[0]
	if isDocument(words[0]) {
		if err := s.takeDocument(words[0]); err != nil {
			return err
		}
	} else if !strings.Contains(words[0], "://") {
		s.cfg.Request.URL = "http://" + words[0] // as curl does
	}
	if s.countURL+s.countCommand+s.countQuery != "" {
		s.cfg.Count = s.count
	}
	if s.between != "" {
		s.cfg.Between = func(ctx context.Context) error { _, err := s.output(ctx, s.between); return err }
	}
	s.cfg.Request.setType()
	return s.cfg.check()
}

// trial are words in the names of hosts that nobody depends on.
var trial = regexp.MustCompile(`(?i)(^|[.-])(test|testing|sandbox|staging|stage|dev|development|local|localhost|internal|qa|uat|demo|preview|example|invalid)[0-9]*([.-]|$)`)

// mayChange returns nil if requests may be sent: to loopback without a question, to a host for
// trials if the user agrees, and to any other only with --yes.
func (s *settings) mayChange(in io.Reader, out io.Writer) error {
	host := hostname(s.cfg.Request.URL)
	address := net.ParseIP(host)
	if s.yes || host == "localhost" || address.IsLoopback() || address.IsUnspecified() {
		return nil
	}
	if !trial.MatchString(host) && !address.IsPrivate() {
		return fmt.Errorf("%s looks like production, and up to %d requests that change something would be sent to it; "+
			"use a system for tests, or add --yes", host, s.cfg.MaxRequests)
	}
	_, _ = fmt.Fprintf(out, "Up to %d requests that change something will be sent to %s. Type yes to go on: ", s.cfg.MaxRequests, host)
	var answer string
	if _, _ = fmt.Fscanln(in, &answer); answer != "yes" {
		return fmt.Errorf("nothing was sent to %s; type yes, or add --yes", host)
	}
	return nil
}
