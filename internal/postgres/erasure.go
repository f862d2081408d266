package postgres

import (
	"context"

	"github.com/google/uuid"

	"github.com/oncepay/oncepay/internal/postgres/internal/dbsqlc"
)

// Erased says what was erased of a customer this time.
type Erased struct {
	Account   uuid.UUID
	Addresses int64      // of orders
	Mails     int64      // that waited to be sent
	Answers   int64      // that became tombstones
	Keys      []string   // whose answers Redis may have, whenever they were erased here
	Timelines []Timeline // whose records Redis may have
}

// EraseCustomer erases the name, the e-mail address and the shipping addresses of a customer, and
// the answers that have them. Nothing finds the customer any more. The error is [checkout.NotFound]
// if there never was one.
//
// Requests of the customer may be under way. What they commit before a step is erased by it, and
// afterwards they write no personal data. The steps are no transaction, because others lock an
// order before its customer. They may be repeated.
func (s *Store) EraseCustomer(ctx context.Context, id uuid.UUID) (e Erased, err error) {
	q := dbsqlc.New(s.pool)
	if e.Account, err = q.AccountOfCustomer(ctx, id); err != nil {
		return e, found("customer", err)
	}
	err = q.EraseCustomer(ctx, dbsqlc.EraseCustomerParams{AccountID: e.Account, ID: id, Email: id.String() + "@erased.invalid"})
	if err == nil {
		e.Addresses, err = q.EraseAddresses(ctx, dbsqlc.EraseAddressesParams{AccountID: e.Account, CustomerID: id})
	}
	if err == nil {
		e.Mails, err = q.DropMails(ctx, dbsqlc.DropMailsParams{AccountID: e.Account, CustomerID: id})
	}
	if err == nil {
		err = e.buryAnswers(ctx, q, id)
	}
	return e, translate("erase a customer", err)
}

// buryAnswers makes tombstones first, and deletes copies then: a request that read the answer
// before it was gone holds a record, and loses it.
func (e *Erased) buryAnswers(ctx context.Context, q *dbsqlc.Queries, customer uuid.UUID) error {
	orders, err := q.OrdersOfCustomer(ctx, dbsqlc.OrdersOfCustomerParams{AccountID: e.Account, CustomerID: customer})
	if err != nil {
		return err
	}
	resources := []string{"/v1/customers/" + customer.String()} // as answers name them
	for _, order := range orders {
		resources = append(resources, "/v1/orders/"+order.String())
	}
	if e.Answers, err = q.BuryAnswers(ctx, dbsqlc.BuryAnswersParams{AccountID: e.Account, Resources: resources}); err != nil {
		return err
	}
	if e.Keys, err = q.KeysOfResources(ctx, dbsqlc.KeysOfResourcesParams{AccountID: e.Account, Resources: resources}); err != nil {
		return err
	}
	timelines, err := q.Timelines(ctx)
	for _, t := range timelines {
		e.Timelines = append(e.Timelines, Timeline{System: t.System, Number: t.Number})
	}
	if err != nil {
		return err
	}
	return q.DeleteRecords(ctx, dbsqlc.DeleteRecordsParams{Account: e.Account.String(), Keys: e.Keys})
}
