package oncecheck

import (
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"
)

// call runs the program.
func call(t *testing.T, input string, args ...string) (status int, out, errOut string) {
	t.Helper()
	var o, e strings.Builder
	status = Main(t.Context(), args, strings.NewReader(input), &o, &e)
	return status, o.String(), e.String()
}

func TestMain_RefusesBadInputInOneSentence(t *testing.T) {
	t.Parallel()
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, silent.Close())
	rubbish := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err == nil {
			_, _ = conn.Write([]byte("rubbish\r\n\r\n"))
			_ = conn.Close()
		}
	}))
	t.Cleanup(rubbish.Close)
	_, url := newShop(t, "")
	document := filepath.Join(t.TempDir(), "shop.yaml")
	require.NoError(t, os.WriteFile(document, []byte(shopDocument), 0o600))
	nonsense := filepath.Join(t.TempDir(), "nonsense.json")
	require.NoError(t, os.WriteFile(nonsense, []byte("{\n\n"), 0o600))
	swagger := filepath.Join(t.TempDir(), "swagger.yaml")
	require.NoError(t, os.WriteFile(swagger, []byte("swagger: '2.0'\ninfo: {title: x, version: x}\npaths: {}\n"), 0o600))
	for want, args := range map[string][]string{
		"and not []":             {},
		"and not [\"http":        {url, url},
		"has to be like http":    {"ftp://shop/orders"},
		"--help lists the flags": {"--nothing", url},
		"a header has to be":     {"-H", "x", url},
		"GET changes nothing":    {"-X", "GET", url},
		"there is no rule":       {"--only", "nothing", url},
		"card number":            {"-d", `{"card":"4242 4242 4242 4242"}`, url},
		"read the body":          {"-d", "@nowhere.json", url},
		"no such file":           {"nowhere.yaml#order"},
		"read the OpenAPI":       {nonsense + "#order"},
		"name one, such as":      {"--server", url, document},
		`["PUT /plain" "order" "pay" "typed" "unclear" "vague"]`: {"--server", url, document + "#nothing"},
		"with --server":                      {document + "#order"},
		"the parameter order_id":             {"--server", url, document + "#pay"},
		"formatted as key=value":             {"--parameter", "order_id", document + "#pay"},
		"the member a; give":                 {"--server", url, document + "#vague"},
		"for the body; give":                 {"--server", url, document + "#PUT /plain"},
		"x-idempotency needs":                {"--server", url, document + "#unclear"},
		"the operations []":                  {"--server", url, swagger + "#order"},
		"it has no parameters [\"nothing\"]": {"--parameter", "nothing=1", "--server", url, document + "#order"},
		"invalid header field name":          {"--key-header", "a key", url},
		"is that of the request":             {"-d", `{"a":1}`, "--other-body", `{"a":1}`, url},
		"--other-url or --other-body":        {"--other-url", url, url},
		"the values of the request":          {"-H", "X-A: 1", "--other-header", "x-a: 1", url},
		"write the report":                   {"-d", "{}", "--only", "replay", "--page", "/nowhere/page.html", url},
		"no rule was decided":                {"-d", "{}", "--only", "other-path", url},
		"did not end within":                 {"--attempt", "300ms", "--count-command", "sleep 100", url},
		`"nothing" leads to`:                 {"-d", "{}", "--count", url + "#nothing", url},
		"did not answer":                     {"http://" + silent.Addr().String()},
		"malformed HTTP":                     {rubbish.URL},
		"answered with 400":                  {"-d", "{", url},
		"looks like production":              {"https://api.shop.com/orders"},
		"nothing was sent":                   {"http://192.168.7.7/orders"},
		"went from 0 to 0":                   {"-d", "{}", "--count-command", "echo 0", url},
		`a list in "x"`:                      {"-d", "{}", "--count-command", "echo x", url},
		`"data" leads to`:                    {"-d", "{}", "--count", url + "#data", url},
		"have to be positive":                {"--rate", "-1", url},
		"--max-requests, --rate":             {"--max-requests", "0", url},
		"--other-body is that":               {"-d", `{"a":1,"b":2}`, "--other-body", `{"b":2, "a":1}`, url},
		"at the same host":                   {"--other-url", "http://192.168.7.7/refunds", url},
	} {
		t.Run(want, func(t *testing.T) {
			t.Parallel()
			status, _, errOut := call(t, "", args...)
			require.Equal(t, 2, status)
			require.Contains(t, errOut, want)
			require.Equal(t, 1, strings.Count(errOut, "\n"), errOut)
		})
	}
}

func TestMain_TakesACurlCommand(t *testing.T) {
	t.Parallel()
	_, url := newShop(t, "")
	status, out, errOut := call(t, "", "--only", "replay,one-effect", "--count", url+"/count#data.total",
		"curl", "-sS", "-XPOST", url+"/orders", "-H", "Authorization: Bearer a", "-d", `{"amount":5}`)
	require.Equal(t, 0, status, errOut)
	require.Contains(t, out, "2 hold, 0 broken, 0 not decided")
	require.Regexp(t, `mark of a replay +- +no +no +- +no +none\n`, out)
}

func TestMain_TakesWhatBrowsersCopy(t *testing.T) {
	t.Parallel()
	s, _, err := parseArguments([]string{"--location", "-k", "-b", "a=1", "-A", "agent", "--max-time", "3", "-ofile", "-D", "-", "-#", "-N", "--fail-with-body"}, nil)
	require.NoError(t, err)
	require.NoError(t, s.takeWords([]string{"curl", "127.0.0.1:1/orders"}))
	require.Equal(t, "http://127.0.0.1:1/orders", s.cfg.Request.URL)
	require.Equal(t, http.Header{"Cookie": {"a=1"}, "User-Agent": {"agent"}}, s.cfg.Request.Header)
	require.True(t, s.cfg.Insecure)
}

func TestMain_VerifiesCertificatesUnlessTold(t *testing.T) {
	t.Parallel()
	s := &shop{records: map[string]*record{}}
	server := httptest.NewTLSServer(s)
	t.Cleanup(server.Close)
	status, _, errOut := call(t, "", "-d", "{}", server.URL)
	require.Equal(t, 2, status)
	require.Contains(t, errOut, "certificate")
	report, err := Run(t.Context(), Config{Request: Request{URL: server.URL, Body: "{}"}, Insecure: true, Count: s.count,
		Only: []string{"replay", "client-leaves"}})
	require.NoError(t, err)
	require.Equal(t, 2, report.Count(Holds))
}

func TestNumberAt_CountsWhatIsThere(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]int64{`{"a":[1,2]}`: 2, `{"a":null}`: 0, `{"a":7}`: 7} {
		n, err := numberAt(body, "$.a")
		require.NoError(t, err)
		require.Equal(t, want, n)
	}
}

func TestMain_ShowsTheEvidenceOfWhatIsBroken(t *testing.T) {
	t.Parallel()
	_, url := newShop(t, "other-body")
	status, out, errOut := call(t, "", "--only", "replay,other-body", "--quiet", "-d", `{"amount":5}`, url+"/orders")
	require.Equal(t, 1, status, errOut)
	require.Contains(t, out, "broken       other-body")
	require.NotContains(t, out, "replay")
	require.Contains(t, out, "\n1 hold, 1 broken, 0 not decided; ", "the sum is of all rules")
	require.Contains(t, out, "> POST /orders HTTP/1.1")
	require.Contains(t, out, "< HTTP/1.1 201 Created")
}

func TestMain_WritesReports(t *testing.T) {
	t.Parallel()
	_, url := newShop(t, "other-body")
	page, badge := filepath.Join(t.TempDir(), "page.html"), filepath.Join(t.TempDir(), "badge.svg")
	status, out, errOut := call(t, "", "--only", "replay,other-body", "--json-report", "--page", page, "--badge", badge, "-d", `{"a":"<b>"}`, url)
	require.Equal(t, 1, status, errOut)
	var report Report
	require.NoError(t, json.Unmarshal([]byte(out), &report))
	require.Equal(t, Broken, report.Verdicts[1].Outcome)
	require.NotEmpty(t, report.Verdicts[1].Evidence[0].Response)
	for file, want := range map[string]string{page: "other-body: <strong>broken</strong></h2>", badge: "1 hold, 1 broken"} {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		require.Contains(t, string(text), want)
		require.NotContains(t, string(text), "<b>")
	}
}

func TestMain_ListsRules(t *testing.T) {
	t.Parallel()
	status, out, _ := call(t, "", "--rules")
	require.Equal(t, 0, status)
	require.Equal(t, len(Rules), strings.Count(out, "\n"))
	_, out, _ = call(t, "", "--rules", "replay")
	require.Contains(t, out, "**Why.**")
	status, out, _ = call(t, "", "--help")
	require.Equal(t, 0, status)
	require.Contains(t, out, "--count")
}

func TestMayChange_AsksForHostsThatAreNotLoopback(t *testing.T) {
	t.Parallel()
	for host, want := range map[string]string{
		"localhost": "", "127.0.0.1": "", "[::1]": "", "api.staging.shop.com": "sent", "10.1.2.3": "sent", "sandbox-api.shop.com": "sent",
		"api.shop.com": "production", "93.184.215.14": "production", "contest.shop.com": "production", "localhost.shop.com": "sent",
	} {
		status, _, errOut := call(t, "no\n", "--attempt", "1ms", "--only", "replay", "http://"+host+":1/")
		require.Equal(t, 2, status)
		if want == "" {
			want = "did not answer"
		}
		require.Contains(t, errOut, want, host)
	}
}

func TestChangeLeaf_ChangesNumbersFirst(t *testing.T) {
	t.Parallel()
	body := `{"a":"x","b":[{"c":1},1.5],"d":null}`
	for n, want := range []string{
		`{"a":"x","b":[{"c":2},1.5],"d":null}`, `{"a":"x","b":[{"c":1},1.51],"d":null}`, `{"a":"x b","b":[{"c":1},1.5],"d":null}`, "",
	} {
		require.Equal(t, want, changeLeaf(body, n))
	}
	reordered := reorder(gjson.Parse(body))
	require.JSONEq(t, body, reordered)
	require.Less(t, strings.Index(reordered, `"d"`), strings.Index(reordered, `"a"`))
}
