package checkout

import (
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// What the tests decide on: when it was begun, when it is decided, and by which ID.
var (
	begun  = time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	now    = begun.Add(time.Minute)
	newID  = uuid.MustParse("00000000-0000-7000-8000-00000000000a")
	oldID  = uuid.MustParse("00000000-0000-7000-8000-00000000000b")
	buyer  = uuid.MustParse("00000000-0000-7000-8000-00000000000c")
	orderN = uuid.MustParse("00000000-0000-7000-8000-00000000000d")
)

func usd(amount int64) Money { return Money{Amount: amount, Currency: "USD"} }

func eur(amount int64) Money { return Money{Amount: amount, Currency: "EUR"} }

// in is a value with a change.
func in[T any](value T, change func(*T)) T {
	change(&value)
	return value
}

// kinds are those of the refusals. The API chooses the status by them.
var kinds = map[string]Kind{
	"balance_too_large":      KindUnprocessable,
	"currency_mismatch":      KindUnprocessable,
	"email_taken":            KindConflict,
	"insufficient_funds":     KindDeclined,
	"amount_not_supported":   KindUnprocessable,
	"mixed_currencies":       KindUnprocessable,
	"order_already_paid":     KindConflict,
	"order_being_paid":       KindConflict,
	"order_cancelled":        KindConflict,
	"order_expired":          KindConflict,
	"out_of_stock":           KindConflict,
	"payment_not_succeeded":  KindConflict,
	"payment_processing":     KindConflict,
	"precondition_failed":    KindPrecondition,
	"product_not_found":      KindNotFound,
	"refund_exceeds_payment": KindUnprocessable,
	"stock_too_large":        KindUnprocessable,
	"too_many_declines":      KindConflict,
	"total_too_large":        KindUnprocessable,
	"unknown_product":        KindUnprocessable,
}

// requireRefused checks that a decision was refused with a code, and that nothing follows from it.
func requireRefused[T any](t *testing.T, code string, retryable bool, value T, changes Changes, refused *Error) {
	t.Helper()
	var none T
	require.NotNil(t, refused, code)
	require.Equal(t, code, refused.Code)
	require.Equal(t, retryable, refused.Retryable, code)
	require.NotEmpty(t, refused.Message, code)
	require.Equal(t, kinds[code], refused.Kind, code)
	waits := code == "order_being_paid" || code == "payment_processing"
	require.Equal(t, waits, !refused.Since.IsZero(), "%s: a client is told when to ask again by how long it has taken", code)
	require.Equal(t, none, value, code)
	require.Equal(t, Changes{}, changes, code)
}

// requireDecided checks a decision and all that follows from it.
func requireDecided[T any](t *testing.T, want T, follows Changes, value T, changes Changes, refused *Error) {
	t.Helper()
	require.Nil(t, refused)
	require.Equal(t, want, value)
	require.Equal(t, follows, changes)
}
