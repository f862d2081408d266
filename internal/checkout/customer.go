package checkout

import (
	"net/mail"
	"strings"
	"time"

	"github.com/google/uuid"
)

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

// CreateCustomer decides a new customer, whose wallet is empty.
func CreateCustomer(wanted NewCustomer, emailTaken bool, id uuid.UUID, now time.Time) (Customer, Changes, *Error) {
	if emailTaken {
		return Customer{}, Changes{}, EmailTaken()
	}
	customer := Customer{ID: id, Name: wanted.Name, Email: wanted.Email, CreatedAt: now, UpdatedAt: now}
	wallet := Wallet{CustomerID: id, Balance: Money{Currency: WalletCurrency}, UpdatedAt: now}
	return customer, Changes{CreatedCustomer: &customer, CreatedWallet: &wallet, Events: []Event{CustomerCreated(customer)}}, nil
}

// UpdateCustomer decides a change of a locked customer.
func UpdateCustomer(customer Customer, change CustomerChange, emailTaken bool, now time.Time) (Customer, Changes, *Error) {
	if emailTaken {
		return Customer{}, Changes{}, EmailTaken()
	}
	if change.Name != nil {
		customer.Name = *change.Name
	}
	if change.Email != nil {
		customer.Email = *change.Email
	}
	customer.UpdatedAt = now
	return customer, Changes{ChangedCustomer: &customer, Events: []Event{CustomerUpdated(customer)}}, nil
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
