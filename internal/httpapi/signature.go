package httpapi

import (
	"errors"
	"fmt"
	"net/http"
	"strings"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

// newSignatures reads secrets of Standard Webhooks; "" is none.
func newSignatures(secrets ...string) (signatures []*standardwebhooks.Webhook, err error) {
	for _, secret := range secrets {
		if secret == "" {
			continue
		}
		if strings.TrimPrefix(secret, "whsec_") == "" { // anybody could sign with it
			return nil, errors.New("httpapi: the webhook secret is empty")
		}
		signature, err := standardwebhooks.NewWebhook(secret)
		if err != nil {
			return nil, fmt.Errorf("httpapi: the webhook secret: %w", err)
		}
		signatures = append(signatures, signature)
	}
	return signatures, nil
}

// checkSignature accepts an event that is signed with any of the secrets, over its ID, its time and
// every byte of its body, and that is at most five minutes old (Standard Webhooks 1.0.0, "Signature
// scheme" and "Verifying webhook authenticity").
func (s *Server) checkSignature(body []byte, header http.Header) error {
	refused := errNoSecret
	for _, signature := range s.signatures {
		if refused = signature.Verify(body, header); refused == nil {
			return nil
		}
	}
	return refused
}
