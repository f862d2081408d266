//go:build !unix

package httpapi

import "context"

// isClosed is not known here; net/http finds it out a little later.
func isClosed(context.Context) bool { return false }
