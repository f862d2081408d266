package app

import (
	"errors"
	"fmt"
	"os"
	"reflect"
	"strings"
)

// readFiles sets the settings that are in files, such as the secrets that a cluster mounts. The end
// of the last line is not part of a value.
func readFiles(set map[string]string) error {
	var errs []error
	for field := range reflect.TypeFor[Config]().Fields() {
		name := field.Tag.Get("env")
		path, inFile := set[name+"_FILE"]
		if !inFile {
			continue
		}
		text, err := os.ReadFile(path) //nolint:gosec // the operator names the file
		value := strings.TrimRight(string(text), "\r\n")
		switch {
		case set[name] != "":
			errs = append(errs, fmt.Errorf("%s and %s_FILE are both set: remove one", name, name))
		case err != nil:
			errs = append(errs, fmt.Errorf("%s_FILE: %w", name, err))
		case value == "":
			errs = append(errs, fmt.Errorf("%s_FILE: %s is empty", name, path))
		}
		set[name] = value
	}
	return errors.Join(errs...)
}
