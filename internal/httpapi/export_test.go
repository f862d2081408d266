package httpapi

import (
	"github.com/getkin/kin-openapi/openapi3"

	"github.com/oncepay/oncepay/api"
)

// NewStricter makes the server of a release that has changed the description of each body.
func NewStricter(cfg Config, change func(body *openapi3.Schema)) (*Server, error) {
	spec, err := api.GetSpec()
	if err != nil {
		return nil, err
	}
	for _, item := range spec.Paths.Map() {
		for _, operation := range item.Operations() {
			if operation.RequestBody != nil {
				change(operation.RequestBody.Value.Content.Get("application/json").Schema.Value)
			}
		}
	}
	return newServer(cfg, newValidator(spec))
}
