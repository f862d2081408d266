// Package recipes shows how to use the library where its middleware alone is not enough: with two
// frameworks, JSON-RPC and a Redis stream. Copy the file that you need. Its tests show the order of
// middleware, and how checks become metrics and traces.
//
// The handlers of Echo and Gin do not write to an [net/http.ResponseWriter] alone. Their own
// adapters for net/http middleware are not enough: a handler's error becomes an answer only after
// the middleware returned, so an empty 200 would be kept and replayed. Middleware that answers
// while the handler goes on, such as gin-contrib/timeout, must not be inside: use the policy's
// Deadline.
package recipes
