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
	LockDueOrders LockProductsOfOrders StampPayments StampRefunds CountPayments
	InsertProviderEvent SetProviderEventVerdict FindPayment FindRefund PurgeProviderEvents`)

// TestQueries_NameTheirAccount: that IDs are random does not keep accounts apart.
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
			if !regexp.MustCompile(`(?s)account_id = @account_id|VALUES.*@account_id`).MatchString(statement) {
				without = append(without, name)
			}
		}
	}
	slices.Sort(without)
	require.Equal(t, slices.Sorted(slices.Values(ofNoAccount)), without)
}
