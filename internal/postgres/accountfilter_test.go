package postgres_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// ofNoAccount lists the queries that serve no account: those of the workers, of the commands of an
// operator, and those that find out whose a row is.
var ofNoAccount = strings.Fields(`
	APIKeysVersion APIKeys AccountExists AddAccount SeedAccount SuspendAccount IssueAPIKey RevokeAPIKey RotateAPIKey ListAPIKeys CountValidKeys
	RefuseEvent TakeDueDeadLetters ListDeadLetters RetryDeadLetters
	ConfirmOrders NoticeWarehouse AdvanceConsumer MissingEvents ConsumerLag PurgeInbox
	LeaseOutbox ReleaseOutbox LastDrawnPosition EventsBetween AdvanceOutbox OutboxBacklog KeptEvents ReplayEvents PurgeEvents
	InsertLedgerEntry MailsOverdue TakeMails SettleMails
	AccountOfCustomer DeleteRecords
	LockDueOrders LockProductsOfOrders StampPayments StampRefunds CountPayments
	InsertProviderEvent SetProviderEventVerdict FindPayment FindRefund PurgeProviderEvents`)

var (
	readsOrWrites = regexp.MustCompile(`\b(FROM|UPDATE|INTO) [a-z_]+`)
	ofTheAccount  = regexp.MustCompile(`account_id = @account_id|VALUES \[@account_id\]|FROM order_items WHERE order_id = orders\.id|FROM timelines`)
	innermost     = regexp.MustCompile(`\([^()]*\)`)
)

// namesAccount says whether a statement names the account, and so does each sub-query by itself.
func namesAccount(statement string) (named bool) {
	for {
		query, rest := statement, ""
		inner := innermost.FindStringIndex(statement)
		if inner != nil {
			query = statement[inner[0]:inner[1]]
		}
		switch reads, names := readsOrWrites.MatchString(query), ofTheAccount.MatchString(query); {
		case reads && !names:
			return false
		case names:
			named = true
		case strings.Contains(query, "@account_id"):
			rest = "[@account_id]" // a list of values
		}
		if inner == nil {
			return named
		}
		statement = statement[:inner[0]] + rest + statement[inner[1]:]
	}
}

// TestQueries_NameTheirAccount: that IDs are random does not keep accounts apart. A sub-query with
// the account does not excuse the query around it.
func TestQueries_NameTheirAccount(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../../sql/queries/*.sql")
	require.NoError(t, err)
	var without []string
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		for _, query := range strings.Split(string(text), "-- name: ")[1:] {
			name, statement, _ := strings.Cut(query, " ")
			if !namesAccount(regexp.MustCompile(`(?m)^--.*$`).ReplaceAllString(statement, "")) {
				without = append(without, name)
			}
		}
	}
	slices.Sort(without)
	require.Equal(t, slices.Sorted(slices.Values(ofNoAccount)), without)
	for statement, want := range map[string]bool{
		"SELECT * FROM orders WHERE account_id = @account_id AND id = (SELECT order_id FROM payments WHERE account_id = @account_id AND id = @id)": true,
		"SELECT * FROM orders WHERE id = (SELECT order_id FROM payments WHERE account_id = @account_id AND id = @id)":                              false,
		"SELECT * FROM orders WHERE account_id = @account_id AND id = (SELECT order_id FROM payments WHERE id = @id)":                              false,
		"INSERT INTO orders (id, account_id) VALUES (gen_random_uuid(), @account_id)":                                                              true,
		"INSERT INTO orders (id, account_id) VALUES (@id, @other)":                                                                                 false,
		"UPDATE orders SET paid = (@account_id IS NOT NULL) WHERE id = @id":                                                                        false,
	} {
		require.Equal(t, want, namesAccount(statement), statement)
	}
}
