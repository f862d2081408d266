// Command sql prints the SQL of a table of idempotency keys, as one migration:
//
//	go run github.com/oncepay/oncepay/idempotency/authority/sql -table booking_keys -scope account_id -type bigint \
//		>db/migrations/000007_booking_keys.up.sql
package main

import (
	"flag"
	"fmt"

	"github.com/oncepay/oncepay/idempotency/authority"
)

func main() {
	table := flag.String("table", authority.DefaultTable, "the table's `name`")
	scope := flag.String("scope", authority.DefaultScope, "the `name` of the column that says whose key it is")
	scopeType := flag.String("type", `text COLLATE "C"`, "the `type` of that column")
	flag.Parse()
	fmt.Print(authority.SQL(*table, *scope, *scopeType))
}
