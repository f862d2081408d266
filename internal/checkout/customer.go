package checkout

import (
	"net/mail"
	"strings"
	"time"

	"github.com/google/uuid"
)

// Account owns everything else: it is whom an API key authenticates, and the scope of its
// idempotency keys.
type Account struct {
	ID   uuid.UUID
	Name string
}

// Customer is a buyer. Each has a wallet.
type Customer struct {
	ID        uuid.UUID
	Name      string
	Email     string
	CreatedAt time.Time
	UpdatedAt time.Time
}

// NewCustomer asks for a customer with an empty wallet.
type NewCustomer struct {
	Name  string
	Email string
}

// CustomerChange changes the fields that are not nil.
type CustomerChange struct {
	Name  *string
	Email *string
}

// Apply is the customer with the change made.
func (c Customer) Apply(change CustomerChange) Customer {
	if change.Name != nil {
		c.Name = *change.Name
	}
	if change.Email != nil {
		c.Email = *change.Email
	}
	return c
}

// EmailTaken is retryable: nothing was written, the client corrects the address and may keep its
// key.
func EmailTaken() *Error {
	return &Error{Kind: KindConflict, Code: "email_taken", Retryable: true,
		Message: "Another customer of this account has this e-mail address."}
}

func checkName(name string) *Error {
	if strings.TrimSpace(name) == "" {
		return invalid("invalid_name", "name must not be blank")
	}
	return nil
}

func checkEmail(email string) *Error {
	if address, err := mail.ParseAddress(email); err != nil || address.Address != email {
		return invalid("invalid_email", "email must be a plain address such as ada@example.com")
	}
	return nil
}
