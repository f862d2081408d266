package app

import (
	"net/http"

	"github.com/oncepay/oncepay/idempotency"
)

// Option replaces a part of a replica, for programs that are built around one, such as comparisons
// with other systems.
type Option func(*App)

// WithFront has every request to the API go through front before anything of ours sees it.
func WithFront(front func(http.Handler) http.Handler) Option {
	return func(a *App) { a.front = front }
}

// WithRecords has the idempotency records kept in store, whatever Config.Store says. The store must
// outlive the App.
func WithRecords(store idempotency.Store) Option {
	return func(a *App) { a.servers.records = store }
}
