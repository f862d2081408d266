package main

import (
	"bytes"
	"fmt"
)

const httpHead = `# Requests to try against a local stack, made from openapi.yaml and stories.yaml by "task generate".
# For the REST Client of Visual Studio Code, httpYac and others that know its request variables.
# Send them in order: later ones use the IDs of earlier answers.

@host = http://127.0.0.1:8080
@account = sk_test_demo
@other = sk_test_other
# Keys and e-mail addresses contain this number. With a new one everything happens anew.
@run = 1
`

// httpFile writes the stories for editors.
func httpFile(stories []story) []byte {
	var out bytes.Buffer
	out.WriteString(httpHead)
	for i, s := range stories {
		fmt.Fprintf(&out, "\n### %d. %s\n", i+1, s.Title)
		if s.About != "" {
			fmt.Fprintf(&out, "# %s\n", s.About)
		}
		for _, step := range s.Steps {
			writeRequest(&out, step)
		}
	}
	return out.Bytes()
}

func writeRequest(out *bytes.Buffer, s step) {
	id := func(name string) string { return "{{" + name + ".response.body.$.id}}" }
	account := "account"
	if s.As != "" {
		account = s.As
	}
	fmt.Fprintf(out, "\n###\n# @name %s\n# %s\n%s {{host}}%s\nAuthorization: Bearer {{%s}}\n",
		s.Name, s.expected(), s.method, refer(s.path, id), account)
	if key := s.key(); key != "" {
		fmt.Fprintf(out, "Idempotency-Key: %s\n", refer(key, id))
	}
	if s.Body != "" {
		fmt.Fprintf(out, "Content-Type: application/json\n\n%s\n", refer(s.Body, id))
	}
}
