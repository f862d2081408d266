package httpapi

import (
	"errors"
	"fmt"
	"net/http"
	"runtime/debug"

	"github.com/go-chi/chi/v5/middleware"
)

// recover turns a panic into a 500. The idempotency stage has released the key by then.
// [http.ErrAbortHandler] passes: it asks for the connection to break.
func (s *Server) recover(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			reason := recover()
			if reason == nil {
				return
			}
			err, _ := reason.(error)
			out, wrapped := w.(middleware.WrapResponseWriter)
			if errors.Is(err, http.ErrAbortHandler) || (wrapped && out.Status() != 0) {
				panic(reason) // net/http breaks the connection, so that no half answer looks whole
			}
			s.fail(w, r, fmt.Errorf("panic: %v\n%s", reason, debug.Stack()))
		}()
		next.ServeHTTP(w, r)
	})
}
