package verify

import (
	"time"

	"github.com/oncepay/oncepay/loadtest/books"
)

// redisSlack allows for the time between the reading of the two clocks.
const redisSlack = 2 * time.Second

// StaleRecords finds answers in Redis that outlive their row in PostgreSQL.
func StaleRecords(records []books.Record) []books.Violation {
	var found []books.Violation
	for _, r := range records {
		switch {
		case !r.HasRow:
			found = append(found, books.Broken(NoStaleRecord, "%s has no row", r.Name))
		case r.Left > r.RowLeft+redisSlack:
			found = append(found, books.Broken(NoStaleRecord, "%s is kept for %s, its row for %s", r.Name, r.Left, r.RowLeft))
		}
	}
	return found
}
