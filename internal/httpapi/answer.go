package httpapi

import (
	"net/http"

	"github.com/oncepay/oncepay/idempotency/authority"
)

// answer writes a command's answer byte for byte as it is stored. It is the response of every
// operation that takes a key: the generated interface of each one has a method of its own.
type answer authority.Answer

func (a answer) VisitPutProductResponse(w http.ResponseWriter) error     { return a.write(w) }
func (a answer) VisitUpdateProductResponse(w http.ResponseWriter) error  { return a.write(w) }
func (a answer) VisitCreateCustomerResponse(w http.ResponseWriter) error { return a.write(w) }
func (a answer) VisitUpdateCustomerResponse(w http.ResponseWriter) error { return a.write(w) }
func (a answer) VisitCreateTopUpResponse(w http.ResponseWriter) error    { return a.write(w) }
func (a answer) VisitCreateOrderResponse(w http.ResponseWriter) error    { return a.write(w) }
func (a answer) VisitUpdateOrderResponse(w http.ResponseWriter) error    { return a.write(w) }
func (a answer) VisitCreatePaymentResponse(w http.ResponseWriter) error  { return a.write(w) }
func (a answer) VisitCreateRefundResponse(w http.ResponseWriter) error   { return a.write(w) }

func (a answer) write(w http.ResponseWriter) error {
	for name, value := range a.Header {
		w.Header().Set(name, value)
	}
	w.WriteHeader(a.Status)
	_, _ = w.Write(a.Body) // the client may be gone
	return nil
}
