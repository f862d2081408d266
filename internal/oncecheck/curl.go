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
	r := &s.cfg.Request
	r.Header = http.Header{}
	set := func(name string) func(string) error {
		return func(text string) error { r.Header.Add(name, text); return nil }
	}
	ignored := func(string) error { return nil }
	for _, f := range []struct {
		names, usage string
		take         func(string) error
	}{
		{"X request", "the `method` (default POST)", func(text string) error { r.Method = text; return nil }},
		{"url", "the `URL`", func(text string) error { r.URL = text; return nil }},
		{"H header", "a `header`, such as 'Authorization: Bearer …'; may be given again", header(r.Header)},
		{"A user-agent", "the header `User-Agent`", set("User-Agent")},
		{"b cookie", "the header `Cookie`", set("Cookie")},
		{"e referer", "the header `Referer`", set("Referer")},
		{"u user", "`USER:PASSWORD` of Basic authentication", func(text string) error {
			return set("Authorization")("Basic " + base64.StdEncoding.EncodeToString([]byte(text)))
		}},
		{"d data data-binary data-ascii json", "the `body`, or @FILE", s.addBodyOrFile},
		{"data-raw", "the `body`", s.addBody},
		{"m max-time connect-timeout o output w write-out", "ignored; --attempt bounds an answer", ignored},
	} {
		for name := range strings.FieldsSeq(f.names) {
			flags.Func(name, f.usage, f.take)
		}
	}
	for _, name := range []string{"k", "insecure"} {
		flags.BoolVar(&s.cfg.Insecure, name, false, "do not verify certificates")
	}
	for _, name := range []string{"s", "S", "i", "v", "f", "L", "silent", "show-error", "include", "verbose", "fail", "compressed", "location"} {
		flags.BoolFunc(name, "ignored, as it changes what curl prints or follows", ignored)
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

// addBody adds a part of the body, as curl's --data-raw takes it.
func (s *settings) addBody(text string) error {
	s.body = append(s.body, text)
	return nil
}

// addBodyOrFile is the same for -d.
func (s *settings) addBodyOrFile(text string) error {
	if name, isFile := strings.CutPrefix(text, "@"); isFile {
		content, err := os.ReadFile(name) //nolint:gosec // the user names the file
		if err != nil {
			return fmt.Errorf("read the body: %w", err)
		}
		text = string(content)
	}
	return s.addBody(text)
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
