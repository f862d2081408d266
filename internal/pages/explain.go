package pages

import (
	"encoding/json"
	"net/http"

	"github.com/go-chi/chi/v5"

	"github.com/oncepay/oncepay/api"
)

// explanation is what a page says about a problem: when it is answered, and what a client should
// do.
type explanation struct {
	Code   string
	Status int
	Detail string // of the example
	When   string
	Then   string
}

// group is a part of the list of problems.
type group struct {
	Title    string
	Problems []explanation
}

// Title is the status in words.
func (e explanation) Title() string { return http.StatusText(e.Status) }

// Example is an answer with the problem.
func (e explanation) Example() (string, error) {
	text, err := json.MarshalIndent(api.Problem{
		Type: Problems + e.Code, Title: e.Title(), Status: e.Status, Detail: e.Detail, Code: e.Code, Error: e.Detail,
		RequestID: "019aa4c2-7f5e-7000-8000-000000000000",
	}, "", "  ")
	return string(text), err
}

// Status is the HTTP status of a problem, and 0 if the problem has no page.
func Status(code string) int { return byCode[code].Status }

// byCode are the explanations of all groups.
var byCode = func() map[string]explanation {
	all := map[string]explanation{}
	for _, g := range groups {
		for _, e := range g.Problems {
			all[e.Code] = e
		}
	}
	return all
}()

// explain answers with the page of a problem.
func explain(notFound http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		found, ok := byCode[chi.URLParam(r, "code")]
		if !ok {
			notFound(w, r)
			return
		}
		render("problem.html", found)(w, r)
	}
}
