package verify_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/loadtest/books"
	"github.com/oncepay/oncepay/loadtest/faults/journal"
	"github.com/oncepay/oncepay/loadtest/faults/verify"
)

const stuckAfter = 10 * time.Second

func (r *run) score() verify.Score { return verify.Count(r.attempts, r.books, stuckAfter) }

// execute enters another execution of a key, as it is kept behind another system, that made the
// resource.
func (r *run) execute(key, resource string) {
	r.books.Keys = append(r.books.Keys, books.KeyRow{KeyID: books.KeyID{Account: account, Key: key + verify.ExecutionMark + "again"},
		Status: "completed", ResponseStatus: 201, Body: "body of " + resource, Resource: resource})
}

func (r *run) answer(key string, at, status int, body, code string) *journal.Attempt {
	a := attempt(key, at, status, body)
	a.Code = code
	r.attempts = append(r.attempts, a)
	return &r.attempts[len(r.attempts)-1]
}

func TestCount_FindsNothingInAHealthyRun(t *testing.T) {
	t.Parallel()
	require.Equal(t, verify.Score{Keys: 8, Effects: 6}, healthy().score())
}

// Each mistake shows where it should, and nowhere else.
func TestCount_CountsEachAnomaly(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		mistake func(*run)
		want    func(*verify.Score)
	}{
		"two executions of a key": {
			func(r *run) {
				r.execute("key-t1", "t2")
				r.books.TopUps = append(r.books.TopUps, books.TopUp{ID: "t2"})
			},
			func(s *verify.Score) { s.Effects++; s.ExtraEffects++; s.DoubledKeys++ },
		},
		"an effect without a key": {
			func(r *run) { r.books.TopUps = append(r.books.TopUps, books.TopUp{ID: "t2"}) },
			func(s *verify.Score) { s.Effects++; s.ExtraEffects++ },
		},
		"an execution without an effect of its own": {func(r *run) { r.execute("key-t1", "") }, func(*verify.Score) {}},
		"a cancellation makes nothing": {
			func(r *run) {
				r.see("key-cancel", "o1")
				r.books.Keys[len(r.books.Keys)-1].Operation = "update_order"
			},
			func(s *verify.Score) { s.Keys++ },
		},
		"two charges of an order": {
			func(r *run) { r.books.Charges = append(r.books.Charges, r.books.Charges[0]) },
			func(s *verify.Score) { s.DoubleCharges++ },
		},
		"a charge without a payment": {
			func(r *run) {
				r.books.Charges = append(r.books.Charges, books.Charge{Reference: "o3", Status: "succeeded"})
			},
			func(s *verify.Score) { s.ChargesWithoutPayment++ },
		},
		"an answer that PostgreSQL does not know": {
			func(r *run) { r.answer("key-t1", 0, 201, "lost", "").Fingerprint = "A" },
			func(s *verify.Score) { s.LostAnswers++; s.TwoAnswers++ },
		},
		"refused after it had succeeded": {
			func(r *run) { r.answer("key-p1", 30, 409, "no", "order_already_paid") },
			func(s *verify.Score) { s.LostAnswers++; s.RefusedYetDone++ },
		},
		"refused before it had succeeded": {
			func(r *run) { r.answer("key-p1", 0, 409, "no", "order_already_paid") },
			func(s *verify.Score) { s.RefusedYetDone++ },
		},
		"a second request with the key": {
			func(r *run) { r.answer("key-t1", 30, 201, "body of t1", "").Fingerprint = "B" },
			func(s *verify.Score) { s.OtherRequest++ },
		},
		"the answer of another account": {
			func(r *run) {
				a := r.answer("key-t1", 30, 201, "body of t1", "")
				a.Account, a.Resource = "other", "t1"
			},
			func(s *verify.Score) { s.Keys++; s.OtherAccount++ },
		},
		"in progress for too long": {
			func(r *run) {
				r.answer("key-o2", -20, 409, "", "idempotency_in_progress")
				r.answer("key-o2", -9, 409, "", "idempotency_in_progress")
			},
			func(s *verify.Score) { s.Stuck++ },
		},
		"in progress twice, with an answer in between": {
			func(r *run) {
				r.answer("key-o2", -20, 409, "", "idempotency_in_progress")
				r.answer("key-o2", 30, 409, "", "idempotency_in_progress")
			},
			func(*verify.Score) {},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := healthy()
			want := r.score()
			test.want(&want)
			test.mistake(r)
			require.Equal(t, want, r.score())
		})
	}
}
