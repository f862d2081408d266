package oncecheck

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"os"
	"strings"
)

// curlFlags are those flags of curl that make a request, so that a curl command can be pasted.
// Those that only change what curl prints are accepted and do nothing.
func (s *settings) curlFlags(flags *flag.FlagSet) {
	s.cfg.Request.Header = http.Header{}
	for _, name := range []string{"X", "request"} {
		flags.StringVar(&s.cfg.Request.Method, name, "", "the `method` (default POST)")
	}
	for _, name := range []string{"H", "header"} {
		flags.Func(name, "a `header`, such as 'Authorization: Bearer …'; may be given again", header(s.cfg.Request.Header))
	}
	for _, name := range []string{"d", "data", "data-raw", "data-binary", "data-ascii", "json"} {
		flags.Func(name, "the `body`, or @FILE", func(text string) error { return s.addBody(text, name != "data-raw") })
	}
	for _, name := range []string{"u", "user"} {
		flags.Func(name, "`USER:PASSWORD` of Basic authentication", func(text string) error {
			s.cfg.Request.Header.Add("Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte(text)))
			return nil
		})
	}
	flags.StringVar(&s.cfg.Request.URL, "url", "", "the `URL`")
	for flag, name := range map[string]string{"A": "User-Agent", "user-agent": "User-Agent", "b": "Cookie", "cookie": "Cookie",
		"e": "Referer", "referer": "Referer"} {
		flags.Func(flag, "the header `"+name+"`", func(text string) error { s.cfg.Request.Header.Add(name, text); return nil })
	}
	for _, name := range []string{"k", "insecure"} {
		flags.BoolVar(&s.cfg.Insecure, name, false, "do not verify certificates")
	}
	ignored := func(string) error { return nil }
	for _, name := range []string{"s", "S", "i", "v", "f", "L", "silent", "show-error", "include", "verbose", "fail", "compressed", "location"} {
		flags.BoolFunc(name, "ignored, as it changes what curl prints or follows", ignored)
	}
	for _, name := range []string{"m", "max-time", "connect-timeout", "o", "output", "w", "write-out"} {
		flags.Func(name, "ignored; --attempt bounds an answer", ignored)
	}
}

// expand splits curl's short flags: -sSXPOST becomes -s -S -X POST.
func expand(args []string) []string {
	var list []string
	for _, arg := range args {
		if len(arg) < 3 || arg[0] != '-' || arg[1] == '-' {
			list = append(list, arg)
			continue
		}
		for i, letter := range arg[1:] {
			list = append(list, "-"+string(letter))
			if rest := arg[i+2:]; strings.ContainsRune("XHduAbemow", letter) && rest != "" {
				list = append(list, rest)
				break
			}
		}
	}
	return list
}

// addBody adds a part of the body, as curl's -d takes it.
func (s *settings) addBody(text string, mayBeFile bool) error {
	if name, isFile := strings.CutPrefix(text, "@"); isFile && mayBeFile {
		content, err := os.ReadFile(name) //nolint:gosec // the user names the file
		if err != nil {
			return fmt.Errorf("read the body: %w", err)
		}
		text = string(content)
	}
	s.body = append(s.body, text)
	return nil
}

// setBody completes the request. JSON has its type without being asked; all other bodies have
// curl's.
func (s *settings) setBody() {
	r := &s.cfg.Request
	r.Method, r.Body = cmp.Or(r.Method, http.MethodPost), strings.Join(s.body, "&")
	if r.Body == "" || r.Header.Get("Content-Type") != "" {
		return
	}
	kind := "application/x-www-form-urlencoded"
	if json.Valid([]byte(r.Body)) {
		kind = "application/json"
	}
	r.Header.Set("Content-Type", kind)
}
