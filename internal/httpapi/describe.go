package httpapi

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sort"
	"strconv"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"

	"github.com/oncepay/oncepay/api"
	"github.com/oncepay/oncepay/idempotency"
)

// readProblem is why a body could not be read: it is too large, or the client stopped sending.
func readProblem(err error) error {
	var tooLarge *http.MaxBytesError
	if errors.As(err, &tooLarge) {
		return err
	}
	return problem{status: http.StatusBadRequest, code: idempotency.CodeBodyUnreadable, cause: err,
		detail: "The request body could not be read to its end."}
}

// describe says in a sentence where a request breaks the API description and what was expected. The
// value that was sent is not repeated.
func describe(err error) error {
	var request *openapi3filter.RequestError
	if !errors.As(err, &request) {
		return fmt.Errorf("validate request: %w", err)
	}
	var schema *openapi3.SchemaError
	isSchema := errors.As(request.Err, &schema)
	switch {
	case request.Parameter != nil && request.Parameter.Name == "cursor":
		return errInvalidCursor
	case request.Parameter != nil && isSchema:
		return invalidRequest("%s %s.", request.Parameter.Name, expectation(schema))
	case request.Parameter != nil:
		return invalidRequest("%s must be %s.", request.Parameter.Name, typeName(request.Parameter.Schema.Value))
	case isSchema:
		p := invalidRequest("%s", bodySentence(schema))
		if _, code := explained(schema); code != "" {
			p.code = code
		}
		return p
	}
	return invalidRequest("The body does not match the API description.").because(err)
}

func bodySentence(e *openapi3.SchemaError) string {
	path := e.JSONPointer()
	if e.SchemaField == "properties" {
		return fieldPath(append(path, unknownMember(e))) + " is not a known field."
	}
	return fieldPath(path) + " " + expectation(e) + "."
}

// unknownMember finds the first name that the schema doesn't have.
func unknownMember(e *openapi3.SchemaError) string {
	object, _ := e.Value.(map[string]any)
	var unknown []string
	for name := range object {
		if e.Schema.Properties[name] == nil {
			unknown = append(unknown, name)
		}
	}
	sort.Strings(unknown)
	return append(unknown, "")[0]
}

// explained returns what the API description says in words of a constraint that was broken
// (x-must), and the code of the problem if it is a special one (x-code).
func explained(e *openapi3.SchemaError) (must, code string) {
	switch e.SchemaField {
	case "pattern", "not", "uniqueItems":
		must, _ = e.Schema.Extensions["x-must"].(string)
		code, _ = e.Schema.Extensions["x-code"].(string)
	}
	return must, code
}

// expectation is the rest of a sentence about a field that breaks its schema.
func expectation(e *openapi3.SchemaError) string {
	schema := e.Schema
	if must, _ := explained(e); must != "" {
		return "must " + must
	}
	switch e.SchemaField {
	case "required":
		return "is required"
	case "nullable":
		return "must not be null"
	case "type":
		return "must be " + typeName(schema)
	case "enum":
		return "must be one of " + enumText(schema.Enum)
	case "minimum":
		return "must be at least " + number(*schema.Min)
	case "maximum":
		return "must be at most " + number(*schema.Max)
	case "minLength":
		return "must have at least " + count(schema.MinLength, "character")
	case "maxLength":
		return "must have at most " + count(*schema.MaxLength, "character")
	case "minItems":
		return "must have at least " + count(schema.MinItems, "item")
	case "maxItems":
		return "must have at most " + count(*schema.MaxItems, "item")
	case "minProperties":
		return "must have at least " + count(schema.MinProps, "field")
	case "pattern":
		return "must match " + schema.Pattern
	case "format":
		return "must be " + typeName(schema)
	}
	return "does not match the API description"
}

func typeName(schema *openapi3.Schema) string {
	switch {
	case schema.Format == "uuid":
		return "a UUID"
	case schema.Format == "currency":
		return "a currency of ISO 4217 with minor units, such as USD"
	case schema.Format == "date-time":
		return "a date and time, such as 2026-11-21T05:00:00Z"
	case schema.Type.Is(openapi3.TypeInteger) && schema.Format == "int32":
		return "a whole number of 32 bits"
	case schema.Type.Is(openapi3.TypeInteger):
		return "a whole number"
	case schema.Type.Is(openapi3.TypeObject):
		return "an object"
	case schema.Type.Is(openapi3.TypeArray):
		return "an array"
	}
	return "a " + strings.Join(schema.Type.Slice(), " or a ")
}

func enumText(values []any) string {
	texts := make([]string, len(values))
	for i, value := range values {
		texts[i] = fmt.Sprint(value)
	}
	slices.Sort(texts)
	return strings.Join(texts, ", ")
}

func number(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }

func count(n uint64, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return strconv.FormatUint(n, 10) + " " + what + "s"
}

// badParameter answers what the generated code refuses about a parameter, such as one that is sent
// twice.
func (s *Server) badParameter(w http.ResponseWriter, r *http.Request, err error) {
	var (
		format  *api.InvalidParamFormatError
		tooMany *api.TooManyValuesForParamError
		name    = "A parameter"
	)
	switch {
	case errors.As(err, &format):
		name = format.ParamName
	case errors.As(err, &tooMany):
		name = tooMany.ParamName
	}
	s.rejected(w, r, invalidRequest("%s is not valid, or is given more than once.", name).because(err))
}
