package oncecheck

import (
	"fmt"
	"maps"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
)

// variable is a name in braces.
var variable = regexp.MustCompile(`\{\{\s*([^{}]+?)\s*\}\}`)

// takeFile reads a request of a .http file, as editors send it: the one of this name, or the only
// one that changes something.
func (s *settings) takeFile(file, name string) error {
	text, err := os.ReadFile(file) //nolint:gosec // the user names the file
	if err != nil {
		return fmt.Errorf("read the request: %w", err)
	}
	requests := readHTTPFile(string(text))
	if name == "" {
		maps.DeleteFunc(requests, func(_ string, r Request) bool { return r.Method == http.MethodGet })
		if len(requests) == 1 {
			name = slices.Collect(maps.Keys(requests))[0]
		}
	}
	r, ok := requests[name]
	if len(requests) == 0 {
		return fmt.Errorf("%s has no request that changes something", file)
	}
	if !ok {
		return fmt.Errorf("%s has the requests %q; name one, such as %s#NAME", file, slices.Sorted(maps.Keys(requests)), file)
	}
	r.Header.Del(DefaultKeyHeader) // each request gets another one
	if missing := r.missing(); missing != "" {
		return fmt.Errorf("the request %s needs {{%s}}, which is no variable of the file; write its value there", name, missing)
	}
	for header, values := range s.cfg.Request.Header {
		r.Header[header] = values
	}
	s.cfg.Request = r
	return nil
}

// missing is the first variable that has no value.
func (r Request) missing() string {
	for _, text := range r.texts() {
		for _, found := range variable.FindAllStringSubmatch(text, -1) {
			if found[0] != Unique {
				return found[1]
			}
		}
	}
	return ""
}

// readHTTPFile returns the requests by their names; one without a name has its method and URL.
func readHTTPFile(text string) map[string]Request {
	variables, requests := map[string]string{}, map[string]Request{}
	fill := func(text string) string {
		return variable.ReplaceAllStringFunc(text, func(found string) string {
			if value, ok := variables[variable.FindStringSubmatch(found)[1]]; ok {
				return value
			}
			return found
		})
	}
	for _, part := range regexp.MustCompile(`(?m)^###.*$`).Split(text, -1) {
		name, r, inBody := "", Request{Header: http.Header{}}, false
		for line := range strings.Lines(part) {
			line = strings.TrimRight(line, "\r\n")
			switch {
			case inBody:
				r.Body += line + "\n"
			case strings.HasPrefix(line, "@"):
				variable, value, _ := strings.Cut(line[1:], "=")
				variables[strings.TrimSpace(variable)] = fill(strings.TrimSpace(value))
			case strings.HasPrefix(line, "#") || strings.HasPrefix(line, "//"):
				if _, after, ok := strings.Cut(line, "@name "); ok {
					name = strings.TrimSpace(after)
				}
			case line == "":
				inBody = r.URL != ""
			case r.URL == "":
				r.Method, r.URL, _ = strings.Cut(fill(line), " ")
				r.URL, _, _ = strings.Cut(strings.TrimSpace(r.URL), " HTTP/")
			default:
				header, value, _ := strings.Cut(fill(line), ":")
				r.Header.Add(strings.TrimSpace(header), strings.TrimSpace(value))
			}
		}
		if r.URL == "" {
			continue
		}
		if name == "" {
			name = r.Method + " " + r.URL
		}
		r.Body = strings.TrimSpace(fill(r.Body))
		requests[name] = r
	}
	return requests
}
