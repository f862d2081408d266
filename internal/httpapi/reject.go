package httpapi

import (
	"net/http"
	"slices"

	"github.com/oncepay/oncepay/idempotency"
	"github.com/oncepay/oncepay/internal/cardnumber"
)

// reject answers a request that a stage in front of its key rejects. A request that was executed,
// perhaps by a release with other rules, gets its own answer. A key with a card number is not
// looked up, because each look is logged.
func (s *Server) reject(w http.ResponseWriter, r *http.Request, rejection error) {
	if slices.ContainsFunc(r.Header.Values(idempotency.HeaderKey), cardnumber.Contains) {
		s.fail(w, r, rejection)
		return
	}
	s.idempotency.Reject(w, r, func(w http.ResponseWriter, r *http.Request) { s.rejected(w, r, rejection) })
}

// rejected answers as the authority says, or with the rejection.
func (s *Server) rejected(w http.ResponseWriter, r *http.Request, rejection error) {
	kept, err := s.cfg.Service.Rejected(r.Context(), callOf[any](r.Context(), "", nil), rejection)
	own, err := answered(r.Context(), kept, err)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	_ = own.write(w) // which never fails
}
