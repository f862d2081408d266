package main

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// The format of a Postman collection, as far as it is needed
// (https://schema.postman.com/collection/json/v2.1.0/draft-07/docs/index.html).
type (
	collection struct {
		Info     info       `json:"info"`
		Auth     auth       `json:"auth"`
		Variable []variable `json:"variable"`
		Item     []folder   `json:"item"`
	}
	info struct {
		Name        string `json:"name"`
		Description string `json:"description"`
		Schema      string `json:"schema"`
	}
	auth struct {
		Type   string     `json:"type"`
		Bearer []variable `json:"bearer"`
	}
	variable struct {
		Key   string `json:"key"`
		Value string `json:"value"`
	}
	folder struct {
		Name        string `json:"name"`
		Description string `json:"description,omitempty"`
		Item        []item `json:"item"`
	}
	item struct {
		Name    string  `json:"name"`
		Request request `json:"request"`
		Event   []event `json:"event"`
	}
	request struct {
		Method string     `json:"method"`
		URL    string     `json:"url"`
		Auth   *auth      `json:"auth,omitempty"`
		Header []variable `json:"header"`
		Body   *body      `json:"body,omitempty"`
	}
	body struct {
		Mode string `json:"mode"`
		Raw  string `json:"raw"`
	}
	event struct {
		Listen string `json:"listen"`
		Script script `json:"script"`
	}
	script struct {
		Type string   `json:"type"`
		Exec []string `json:"exec"`
	}
)

// postmanCollection writes the stories for Postman and Bruno: a folder for each.
func postmanCollection(stories []story) ([]byte, error) {
	out := collection{
		Info: info{"oncepay", "Made from openapi.yaml and stories.yaml. Send the requests in order: later ones use the IDs of earlier answers. " +
			"With a new value of the variable run, everything happens anew.", "https://schema.getpostman.com/json/collection/v2.1.0/collection.json"},
		Auth: bearer("account"),
		Variable: []variable{{"host", "http://127.0.0.1:8080"}, {"account", "sk_test_demo"},
			{"other", "sk_test_other"}, {"run", "1"}},
	}
	for i, s := range stories {
		f := folder{Name: fmt.Sprintf("%d. %s", i+1, s.Title), Description: s.About}
		for _, step := range s.Steps {
			f.Item = append(f.Item, itemOf(step))
		}
		out.Item = append(out.Item, f)
	}
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	err := encoder.Encode(out)
	return text.Bytes(), err
}

func itemOf(s step) item {
	id := func(name string) string { return "{{" + name + "_id}}" }
	r := request{Method: s.method, URL: "{{host}}" + refer(s.path, id), Header: []variable{}}
	if s.As != "" {
		other := bearer(s.As)
		r.Auth = &other
	}
	if key := s.key(); key != "" {
		r.Header = append(r.Header, variable{"Idempotency-Key", refer(key, id)})
	}
	if s.Body != "" {
		r.Header = append(r.Header, variable{"Content-Type", "application/json"})
		r.Body = &body{"raw", refer(s.Body, id)}
	}
	return item{s.Name + ": " + s.expected(), r, []event{{"test", script{"text/javascript", checks(s)}}}}
}

// checks are what Postman looks at after the answer. It also keeps the ID for later requests.
func checks(s step) []string {
	lines := []string{fmt.Sprintf(`pm.test(%q, () => pm.response.to.have.status(%d));`, s.expected(), s.Status)}
	if s.Replay {
		lines = append(lines, `pm.test("a replay", () => pm.response.to.have.header("X-Idempotent-Replay", "true"));`)
	}
	if s.Status < 300 {
		lines = append(lines, fmt.Sprintf(`pm.collectionVariables.set("%s_id", pm.response.json().id);`, s.Name))
	}
	return lines
}

func bearer(name string) auth { return auth{"bearer", []variable{{"token", "{{" + name + "}}"}}} }
