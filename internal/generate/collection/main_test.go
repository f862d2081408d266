package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/api"
)

func stories(t *testing.T) []story {
	t.Helper()
	all, err := readStories("../../../api/stories.yaml")
	require.NoError(t, err)
	return all
}

func TestStories_CallEveryOperation(t *testing.T) {
	t.Parallel()
	called := map[string]bool{"receiveProviderEvent": true, "receiveStripeEvent": true} // for providers, who sign
	for _, s := range stories(t) {
		for _, step := range s.Steps {
			called[step.Call] = true
		}
	}
	spec, err := api.GetSpec()
	require.NoError(t, err)
	for _, item := range spec.Paths.Map() {
		for _, operation := range item.Operations() {
			require.True(t, called[operation.OperationID], "no request of api/stories.yaml calls %s", operation.OperationID)
		}
	}
}

func TestStories_ReferToEarlierSteps(t *testing.T) {
	t.Parallel()
	earlier := map[string]bool{"run": true}
	for _, s := range stories(t) {
		for _, step := range s.Steps {
			for _, found := range reference.FindAllStringSubmatch(step.path+step.Body+step.key(), -1) {
				require.True(t, earlier[found[1]], "%s: %s", step.Name, found[0])
			}
			require.False(t, earlier[step.Name], step.Name)
			earlier[step.Name] = true
		}
	}
}

func TestPostman_HasTheRequestsOfTheHTTPFile(t *testing.T) {
	t.Parallel()
	text, err := postmanCollection(stories(t))
	require.NoError(t, err)
	var made collection
	require.NoError(t, json.Unmarshal(text, &made))
	file := string(httpFile(stories(t)))
	requests := 0
	for _, f := range made.Item {
		for _, item := range f.Item {
			requests++
			name, _, _ := strings.Cut(item.Name, ":")
			require.Contains(t, file, "# @name "+name+"\n")
			require.NotContains(t, item.Request.URL, "<", name)
		}
	}
	require.Equal(t, strings.Count(file, "# @name "), requests)
}

func TestResolve_RefusesAnUnknownOperation(t *testing.T) {
	t.Parallel()
	spec, err := api.GetSpec()
	require.NoError(t, err)
	require.Error(t, (&step{Name: "x", Call: "noSuchOperation"}).resolve(spec))
	require.Error(t, (&step{Name: "x", Call: "getOrder"}).resolve(spec), "a parameter is missing")
}
