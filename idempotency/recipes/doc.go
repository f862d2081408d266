// Package recipes shows how to use the middleware with frameworks whose handlers do not write
// to an [net/http.ResponseWriter] alone. Copy the file that you need.
//
// Their own adapters for net/http middleware are not enough: a handler's error becomes an
// answer only after the middleware returned, so an empty 200 would be kept and replayed.
package recipes
