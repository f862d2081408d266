// Package httpapi is the shop's HTTP interface: the routes of api/openapi.yaml and the stages
// before them.
//
// A request passes these stages, each of which may end it with a problem (RFC 9457):
//
//	request ID → time of the client attempt → client IP → access log → recover → body limit →
//	(route) → timeout → authenticate → rate limit → admission → validate → stale copies →
//	idempotency → handler
//
// Those up to the body limit wrap the router. The others begin once a route is found, so that an
// unknown path is 404 and a wrong method 405 for everybody, and each route's pattern is known to
// them. A request that is rejected before the idempotency stage never uses up its key. Validation
// and the stage for stale copies reject it only if it was not executed before.
//
// Handlers translate: a request into a command of package checkout, the answer into bytes. What a
// command answers is rendered by pure functions before the commit (see [checkout.Render]), so that
// what is stored is what is sent. Every other error goes through one table, in problem.go.
package httpapi
