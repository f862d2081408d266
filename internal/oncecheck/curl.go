package oncecheck

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strings"

	"github.com/spf13/pflag"
)

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
	for name, short := range map[string]string{"max-time": "m", "connect-timeout": "", "output": "o", "write-out": "w"} {
		flags.StringP(name, short, "", "")
		_ = flags.MarkHidden(name) // the flag is there
	}
	for name, short := range map[string]string{"silent": "s", "show-error": "S", "include": "i", "verbose": "v",
		"fail": "f", "location": "L", "compressed": ""} {
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
