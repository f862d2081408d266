// Command collection makes requests to try from the API's description and from the stories beside
// it: api/oncepay.http for editors, and api/oncepay.postman_collection.json for Postman and Bruno.
// Run it in the repository's root.
package main

import (
	"fmt"
	"os"
)

func main() {
	if err := run("api"); err != nil {
		fmt.Fprintln(os.Stderr, "collection:", err)
		os.Exit(1)
	}
}

// run writes both files into the folder where the stories are.
func run(folder string) error {
	stories, err := readStories(folder + "/stories.yaml")
	if err != nil {
		return err
	}
	collection, err := postmanCollection(stories)
	if err != nil {
		return err
	}
	for name, content := range map[string][]byte{"oncepay.http": httpFile(stories), "oncepay.postman_collection.json": collection} {
		if err := os.WriteFile(folder+"/"+name, content, 0o644); err != nil {
			return err
		}
	}
	return nil
}
