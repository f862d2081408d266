package console

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/internal/stack"
)

// at is a call that began so many milliseconds after the attempt.
func at(ms int, replica, to, name string) call {
	return call{Span: name + replica, Replica: replica, To: to, Name: name, Began: began.Add(time.Duration(ms) * time.Millisecond), Took: time.Millisecond}
}

var began = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// drawn is what the diagram says to those who do not see it.
func drawn(t *testing.T, a attempt) (words string) {
	t.Helper()
	_, words, _ = strings.Cut(rendered(t, a), `role="img" aria-label="`)
	words, _, _ = strings.Cut(words, `"`)
	return strings.TrimSpace(words)
}

func rendered(t *testing.T, a attempt) string {
	t.Helper()
	var html strings.Builder
	require.NoError(t, templates.ExecuteTemplate(&html, "attempt.html", a))
	return html.String()
}

func TestDiagram_DrawsWhatTheReplicasTell(t *testing.T) {
	t.Parallel()
	a := attempt{What: "pay", Door: stack.Nginx, Began: began, Done: true, Took: 9 * time.Millisecond, answer: answer{Status: 201, ServedBy: stack.API1}, Calls: []call{
		at(0, stack.API1, "", "POST"), at(1, stack.API1, stack.Redis, "set"), at(2, stack.API1, stack.Postgres, "ClaimKey"),
		at(3, stack.API1, stack.Postgres, "COMMIT"), at(4, stack.API1, stack.PSP, "HTTP POST"), at(8, stack.API1, stack.Redis, "evalsha"),
	}}
	require.Equal(t, "client to nginx: pay. nginx to api-1: POST. api-1 to Redis: acquire · 1.0 ms. "+
		"api-1 to PostgreSQL: ClaimKey, COMMIT · 2.0 ms. api-1 to provider: charge · 1.0 ms. api-1 to Redis: keep answer · 1.0 ms. "+
		"api-1 to client: 201.", drawn(t, a))
}

func TestDiagram_ShowsWhoDiedAndWhoAnswered(t *testing.T) {
	t.Parallel()
	a := attempt{What: "pay", Door: stack.Nginx, Began: began, Done: true, Took: 3 * time.Second,
		answer: answer{Status: 409, Code: "idempotency_in_progress", RetryAfter: "1", ServedBy: stack.API2}, Calls: []call{
			at(1, stack.API1, stack.Redis, "set"), at(900, stack.API2, "", "POST"), at(901, stack.API2, stack.Redis, "set"),
		}}
	d := a.Diagram()
	require.Equal(t, "client to nginx: pay. nginx to api-1: POST. api-1 to Redis: acquire · 1.0 ms. nginx to api-2: passed on. "+
		"api-2 to Redis: acquire · 1.0 ms. api-2 to client: 409 idempotency_in_progress, retry after 1 s. api-1 fell silent.", drawn(t, a))
	require.Positive(t, d.Dead(stack.API1))
	require.Zero(t, d.Dead(stack.API2))
}

func TestDiagram_SaysWhichTierReplayed(t *testing.T) {
	t.Parallel()
	a := attempt{Door: stack.API2, Done: true, answer: answer{Status: 201, Replay: true, ServedBy: stack.API2}, Calls: []call{
		at(0, stack.API2, stack.Postgres, "AccountByKey"), at(1, stack.API2, stack.Redis, "set"),
	}}
	require.Equal(t, "201, replayed by Redis", a.Outcome())
	a.Calls = append(a.Calls, at(2, stack.API2, stack.Postgres, "ClaimKey"))
	require.Equal(t, "201, replayed by PostgreSQL", a.Outcome())
}

func TestDiagram_OfAnAttemptWithoutAnAnswer(t *testing.T) {
	t.Parallel()
	a := attempt{What: "pay", Door: stack.API1, Began: began, Done: true, Error: "connection refused"}
	require.Equal(t, "api-1 to client: no answer.", drawn(t, a))
	for tone, of := range map[string]answer{
		"again": {}, "good": {Status: 201}, "replay": {Status: 201, Replay: true}, "refused": {Status: 422}, "again ": {Status: 503},
		" again": {Status: 409, RetryAfter: "1"},
	} {
		a.answer = of
		require.Contains(t, rendered(t, a), `class="attempt `+strings.TrimSpace(tone)+`"`)
	}
}
