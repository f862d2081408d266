package api

import (
	_ "embed"

	"github.com/getkin/kin-openapi/openapi3"
)

// Description is openapi.yaml as it was written. It must not be changed.
//
//go:embed openapi.yaml
var Description []byte

// GetSpec reads the description anew. Its error says what is wrong with the file.
func GetSpec() (*openapi3.T, error) { return openapi3.NewLoader().LoadFromData(Description) }
