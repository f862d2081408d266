// Package api is the HTTP interface of oncepay. openapi.yaml is its source;
// the server's types, its strict handlers and the client are generated.
package api

//go:generate go tool -modfile=../tools/generate/go.mod oapi-codegen -config server.yaml openapi.yaml
//go:generate go tool -modfile=../tools/generate/go.mod oapi-codegen -config client.yaml openapi.yaml
