package idempotency_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/idempotency"
)

const documentation = "https://docs.example.com/retries"

// dialects are those of dialects.md, by the headings of its tables.
var dialects = map[string]idempotency.Dialect{
	"IETF": idempotency.IETF(documentation), "Stripe": idempotency.Stripe, "ACP": idempotency.ACP, "UCP": idempotency.UCP,
}

// spoken is a middleware with a dialect and a server whose requests can be held.
type spoken struct {
	*bundle
	status int // of the handler's answers
	hold   func()
}

func speak(t *testing.T, dialect string) *spoken {
	t.Helper()
	s := &spoken{status: http.StatusCreated, hold: func() {}}
	policy := idempotency.Policy{Required: true, TTL: idempotency.DefaultTTL + idempotency.DefaultLease}
	s.bundle = setup(t, policy, func(w http.ResponseWriter, _ *http.Request) {
		s.hold()
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(s.status)
		write(w, `{"done":true}`)
	}, idempotency.WithDialect(dialects[dialect]))
	return s
}

// twice sends two bodies with one key, and returns the second answer.
func (s *spoken) twice(t *testing.T, one, two string) *httptest.ResponseRecorder {
	t.Helper()
	s.post(t, "key", one)
	return s.post(t, "key", two)
}

// during sends a request while another one with its key is in progress.
func (s *spoken) during(t *testing.T) (answer *httptest.ResponseRecorder) {
	t.Helper()
	s.hold = func() {
		s.hold = func() {}
		answer = s.post(t, "key", `{"a":1}`)
	}
	s.post(t, "key", `{"a":1}`)
	require.Equal(t, "1", answer.Header().Get("Retry-After"))
	return answer
}

// rules show what the page says, by dialect and rule.
var rules = map[string]map[string]func(t *testing.T, s *spoken){
	"IETF": {
		"syntax": func(t *testing.T, s *spoken) {
			quoted := s.post(t, `"key"`, `{"a":1}`)
			requireReplay(t, quoted, s.post(t, "key", `{"a":1}`))
		},
		"retry":   runsAgainAfter500,
		"missing": func(t *testing.T, s *spoken) { requireLinked(t, s.post(t, "", `{"a":1}`), 400) },
		"reused":  func(t *testing.T, s *spoken) { requireLinked(t, s.twice(t, `{"a":1}`, `{"a":2}`), 422) },
		"in progress": func(t *testing.T, s *spoken) {
			requireLinked(t, s.during(t), 409)
		},
	},
	"Stripe": {
		"length":    limitsKeys,
		"replay":    replays("Idempotent-Replayed"),
		"kept 500":  runsAgainAfter500,
		"retention": keepsForADay,
		"validation": func(t *testing.T, s *spoken) {
			s.status = http.StatusBadRequest
			require.Equal(t, "true", s.twice(t, `{"a":1}`, `{"a":1}`).Header().Get("Idempotent-Replayed"))
		},
		"replay header": replays("Idempotent-Replayed"),
		"echo":          echoes,
		"reused": func(t *testing.T, s *spoken) {
			requireBody(t, s.twice(t, `{"a":1}`, `{"a":2}`), 400, `{"error":{"type":"idempotency_error","message":`+reused+`}}`)
		},
		"in progress": func(t *testing.T, s *spoken) {
			requireBody(t, s.during(t), 409,
				`{"error":{"type":"idempotency_error","code":"idempotency_key_in_use","message":`+running+`}}`)
		},
	},
	"ACP": {
		"echo": echoes,
		"missing": func(t *testing.T, s *spoken) {
			requireBody(t, s.post(t, "", `{"a":1}`), 400,
				`{"type":"invalid_request","code":"idempotency_key_required","message":"Idempotency-Key header is required"}`)
		},
		"length":        limitsKeys,
		"scope":         refusesAnotherPath(422),
		"member order":  treatsAlike(`{"a":1,"b":2}`, `{"b":2, "a":1}`, true),
		"null":          treatsAlike(`{"a":1,"b":null}`, `{"a":1}`, false),
		"numbers":       treatsAlike(`{"a":1.0}`, `{"a":1}`, true),
		"arrays":        treatsAlike(`{"a":[1,2]}`, `{"a":[2,1]}`, false),
		"headers":       ignoresHeaders,
		"replay":        replays("Idempotent-Replayed"),
		"replay header": replays("Idempotent-Replayed"),
		"reused": func(t *testing.T, s *spoken) {
			requireBody(t, s.twice(t, `{"a":1}`, `{"a":2}`), 422,
				`{"type":"invalid_request","code":"idempotency_conflict","message":`+reused+`}`)
		},
		"in progress": func(t *testing.T, s *spoken) {
			requireBody(t, s.during(t), 409, `{"type":"invalid_request","code":"idempotency_in_flight","message":`+running+`}`)
		},
		"5xx":       runsAgainAfter500,
		"retention": keepsForADay,
		"expiry": func(t *testing.T, s *spoken) {
			s.post(t, "key", `{"a":1}`)
			time.Sleep(25 * time.Hour)
			require.Equal(t, http.StatusCreated, s.post(t, "key", `{"a":2}`).Code)
			require.Equal(t, 2, s.ran())
		},
	},
	"UCP": {
		"entropy":   func(t *testing.T, s *spoken) { require.Equal(t, 201, s.post(t, "k", `{"a":1}`).Code) },
		"scope":     refusesAnotherPath(409),
		"retention": keepsForADay,
		"replay":    replays(idempotency.HeaderReplay),
		"reused": func(t *testing.T, s *spoken) {
			answer := s.twice(t, `{"a":1}`, `{"a":2}`)
			requireBody(t, answer, 409, `{"code":"idempotency_key_reused","content":`+reused+`}`)
			require.Empty(t, answer.Header().Get("Retry-After"))
			require.Equal(t, 1, s.ran())
		},
		"store away": func(t *testing.T, s *spoken) {
			s.store.Fail = func(context.Context, string) error { return idempotency.ErrUnavailable }
			require.Equal(t, http.StatusServiceUnavailable, s.post(t, "key", `{"a":1}`).Code)
			require.Zero(t, s.ran())
		},
		"payload": treatsAlike(`{"a":1,"b":2}`, `{"b":2, "a":1}`, true),
		"errors": func(t *testing.T, s *spoken) {
			requireBody(t, s.during(t), 409, `{"code":"idempotency_in_progress","content":`+running+`}`)
		},
	},
}

// The messages of the two answers, as JSON.
const (
	reused  = `"Idempotency key has already been used with a different request payload."`
	running = `"A request with this idempotency key is already being processed. Retry after the original request completes."`
)

// TestDialects_DoWhatTheirPageSays: each row of dialects.md has a test here, and each test a row.
func TestDialects_DoWhatTheirPageSays(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("dialects.md")
	require.NoError(t, err)
	seen, dialect := map[string]int{}, ""
	for line := range strings.Lines(string(page)) {
		if heading, ok := strings.CutPrefix(line, "## "); ok {
			dialect = strings.TrimSpace(heading)
		}
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		if len(cells) != 5 || cells[0] == "rule" || cells[0] == "---" {
			continue
		}
		rule := rules[dialect][cells[0]]
		require.NotNil(t, rule, line)
		seen[dialect]++
		require.Contains(t, []string{"same", "different", "not offered"}, cells[3])
		require.False(t, cells[3] != "same" && cells[4] == "", "it needs a reason: %s", line)
		dialect := dialect
		t.Run(dialect+" "+cells[0], func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { rule(t, speak(t, dialect)) })
		})
	}
	for name, own := range rules {
		require.Len(t, own, seen[name], name)
	}
}

// TestDialects_WriteAllOtherErrorsToo: an error that no rule is about has the shape of the dialect.
func TestDialects_WriteAllOtherErrorsToo(t *testing.T) {
	t.Parallel()
	away := &idempotency.Error{Status: 503, Code: idempotency.CodeStoreUnavailable, Message: "Later.", RetryAfter: time.Second}
	broken := &idempotency.Error{Status: 500, Code: idempotency.CodeBodyConsumed, Message: "No."}
	large := &idempotency.Error{Status: 413, Code: idempotency.CodeBodyTooLarge, Message: "Too large."}
	for dialect, bodies := range map[string][3]string{
		"Stripe": {`{"error":{"code":"idempotency_store_unavailable","message":"Later.","type":"api_error"}}`,
			`{"error":{"code":"body_consumed","message":"No.","type":"api_error"}}`,
			`{"error":{"code":"body_too_large","message":"Too large.","type":"invalid_request_error"}}`},
		"ACP": {`{"code":"idempotency_store_unavailable","message":"Later.","type":"service_unavailable"}`,
			`{"code":"body_consumed","message":"No.","type":"processing_error"}`,
			`{"code":"body_too_large","message":"Too large.","type":"invalid_request"}`},
		"UCP": {`{"code":"idempotency_store_unavailable","content":"Later."}`,
			`{"code":"body_consumed","content":"No."}`, `{"code":"body_too_large","content":"Too large."}`},
		"IETF": {`{"code":"idempotency_store_unavailable","detail":"Later.","status":503,"title":"Service Unavailable","type":"` + documentation + `"}`,
			`{"code":"body_consumed","detail":"No.","status":500,"title":"Internal Server Error","type":"about:blank"}`,
			`{"code":"body_too_large","detail":"Too large.","status":413,"title":"Request Entity Too Large","type":"about:blank"}`},
	} {
		for i, e := range []*idempotency.Error{away, broken, large} {
			w := httptest.NewRecorder()
			dialects[dialect].WriteError(w, nil, e)
			requireBody(t, w, e.Status, bodies[i])
		}
	}
	require.Equal(t, idempotency.CodeStoreUnavailable, away.Code, "the error is as it was")
}

// TestDialects_WithoutOneNothingChanges: the zero value writes as WriteProblem does.
func TestDialects_WithoutOneNothingChanges(t *testing.T) {
	t.Parallel()
	for _, e := range []*idempotency.Error{idempotency.KeyReused(), idempotency.InProgress(time.Second)} {
		plain, zero := httptest.NewRecorder(), httptest.NewRecorder()
		idempotency.WriteProblem(plain, nil, e)
		idempotency.Dialect{}.WriteError(zero, nil, e)
		require.Equal(t, plain, zero)
	}
	b := setup(t, idempotency.Policy{}, nil)
	first := b.post(t, "key", "")
	require.Empty(t, first.Header().Values("Idempotency-Key"))
	requireReplay(t, first, b.post(t, "key", ""))
}

// TestDialect_MarksAReplayOfTheAuthority: the header is the dialect's there, too.
func TestDialect_MarksAReplayOfTheAuthority(t *testing.T) {
	t.Parallel()
	b := setup(t, idempotency.Policy{}, func(w http.ResponseWriter, r *http.Request) {
		idempotency.ClaimFrom(r.Context()).Replayed()
		w.WriteHeader(http.StatusCreated)
	}, idempotency.WithDialect(idempotency.Stripe))
	answer := b.post(t, "key", "")
	require.Equal(t, "true", answer.Header().Get("Idempotent-Replayed"))
	require.Empty(t, answer.Header().Get(idempotency.HeaderReplay))
}

func runsAgainAfter500(t *testing.T, s *spoken) {
	s.status = http.StatusInternalServerError
	require.Equal(t, http.StatusInternalServerError, s.post(t, "key", `{"a":1}`).Code)
	s.status = http.StatusCreated
	require.Equal(t, http.StatusCreated, s.post(t, "key", `{"a":1}`).Code)
	require.Equal(t, 2, s.ran())
}

func limitsKeys(t *testing.T, s *spoken) {
	require.Equal(t, 201, s.post(t, strings.Repeat("k", 255), `{"a":1}`).Code)
	require.Equal(t, 400, s.post(t, strings.Repeat("k", 256), `{"a":1}`).Code)
}

func replays(header string) func(*testing.T, *spoken) {
	return func(t *testing.T, s *spoken) {
		first, again := s.post(t, "key", `{"a":1}`), s.post(t, "key", `{"a":1}`)
		require.Equal(t, first.Code, again.Code)
		require.Equal(t, first.Body.String(), again.Body.String())
		require.Empty(t, first.Header().Get(header))
		require.Equal(t, "true", again.Header().Get(header))
		require.Equal(t, 1, s.ran())
	}
}

func keepsForADay(t *testing.T, s *spoken) {
	s.post(t, "key", `{"a":1}`)
	time.Sleep(24*time.Hour - time.Second)
	s.post(t, "key", `{"a":1}`)
	require.Equal(t, 1, s.ran())
}

// echoes: the first answer, a replay and a refusal have the key as it was sent.
func echoes(t *testing.T, s *spoken) {
	for _, body := range []string{`{"a":1}`, `{"a":1}`, `{"a":2}`} {
		require.Equal(t, "key", s.post(t, "key", body).Header().Get("Idempotency-Key"))
	}
	require.Empty(t, s.post(t, "a\x7f", `{"a":1}`).Header().Get("Idempotency-Key"), "what is no key is not repeated")
}

func refusesAnotherPath(status int) func(*testing.T, *spoken) {
	return func(t *testing.T, s *spoken) {
		s.post(t, "key", `{"a":1}`)
		other := request(t, "key", `{"a":1}`)
		other.URL.Path = "/refunds"
		require.Equal(t, status, s.send(other).Code)
		require.Equal(t, 1, s.ran())
	}
}

func treatsAlike(one, two string, alike bool) func(*testing.T, *spoken) {
	return func(t *testing.T, s *spoken) {
		require.Equal(t, alike, s.twice(t, one, two).Code == http.StatusCreated)
		require.Equal(t, 1, s.ran())
	}
}

func ignoresHeaders(t *testing.T, s *spoken) {
	s.post(t, "key", `{"a":1}`)
	other := request(t, "key", `{"a":1}`)
	other.Header.Set("Accept-Language", "zh-TW")
	require.Equal(t, http.StatusCreated, s.send(other).Code)
	require.Equal(t, 1, s.ran())
}

func requireLinked(t *testing.T, answer *httptest.ResponseRecorder, status int) {
	t.Helper()
	require.Equal(t, status, answer.Code)
	require.Equal(t, "application/problem+json", answer.Header().Get("Content-Type"))
	var problem struct{ Type, Title string }
	require.NoError(t, json.Unmarshal(answer.Body.Bytes(), &problem))
	require.Equal(t, documentation, problem.Type)
	require.Contains(t, problem.Title, "Idempotency-Key")
}

func requireBody(t *testing.T, answer *httptest.ResponseRecorder, status int, body string) {
	t.Helper()
	require.Equal(t, status, answer.Code)
	require.JSONEq(t, body, answer.Body.String())
}
