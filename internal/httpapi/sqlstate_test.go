package httpapi_test

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
)

// troubles are states with which PostgreSQL ends transactions that are all right themselves
// (PostgreSQL manual, appendix A).
var troubles = map[string]string{"disk full": "53100", "serialization failure": "40001", "deadlock": "40P01", "input/output error": "58030"}

// trouble has every write of a table end with an SQLSTATE, at its statement or at the commit, until
// heal is called.
func (s *shop) trouble(write, table, state string, atCommit bool) (heal func()) {
	s.t.Helper()
	trigger := "CREATE TRIGGER trouble BEFORE %s ON %s FOR EACH ROW EXECUTE FUNCTION trouble()"
	if atCommit {
		trigger = "CREATE CONSTRAINT TRIGGER trouble AFTER %s ON %s DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION trouble()"
	}
	_, err := s.pool.Exec(s.ctx, `CREATE OR REPLACE FUNCTION trouble() RETURNS trigger LANGUAGE plpgsql AS
		$$ BEGIN RAISE EXCEPTION 'trouble' USING ERRCODE = '`+state+`'; END $$; `+fmt.Sprintf(trigger, write, table))
	require.NoError(s.t, err)
	return func() {
		_, err := s.pool.Exec(s.ctx, "DROP TRIGGER trouble ON "+table)
		require.NoError(s.t, err)
	}
}

// TestPostgres_ErrorsHaveOneEffectAfterARetry refuses a write of each operation. The client is told
// to come back, its key is free, and when it does there is one effect.
func TestPostgres_ErrorsHaveOneEffectAfterARetry(t *testing.T) {
	t.Parallel()
	s := setup(t)
	customer := s.customer().ID
	topUps := "/v1/customers/" + customer.String() + "/top-ups"
	s.post(topUps, newKey(), `{"amount":{"amount":100000000,"currency":"USD"}}`, http.StatusCreated)
	wallet := `{"method":{"type":"wallet"}}`
	type operation struct{ name, write, table, path, body string }
	operations := func() []operation {
		unpaid := func() string { return payments(s.order(customer).ID) }
		refunds := func() string { return "/v1/payments/" + s.pay(s.order(customer).ID).ID.String() + "/refunds" }
		return []operation{
			{"order", "INSERT", "orders", "/v1/orders", orderOf(customer, "tee-black", 1)},
			{"customer", "INSERT", "customers", "/v1/customers", `{"name":"Ada","email":"` + newKey() + `@example.com"}`},
			{"top-up", "INSERT", "top_ups", topUps, `{"amount":{"amount":1,"currency":"USD"}}`},
			{"wallet payment", "INSERT", "payments", unpaid(), wallet},
			{"card payment that begins", "INSERT", "payments", unpaid(), card("tok_visa")},
			{"card payment that ends", "UPDATE", "payments", unpaid(), card("tok_visa")},
			{"card refund that begins", "INSERT", "refunds", refunds(), `{}`},
			{"card refund that ends", "UPDATE", "refunds", refunds(), `{}`},
			{"events", "INSERT", "outbox", "/v1/orders", orderOf(customer, "tee-black", 1)},
			{"keys", "INSERT", "idempotency_keys", "/v1/orders", orderOf(customer, "tee-black", 1)},
		}
	}
	for trouble, state := range troubles {
		for _, atCommit := range []bool{false, true} {
			for _, o := range operations() {
				t.Log(trouble, "at commit:", atCommit, "of", o.name)
				key, before := newKey(), s.effect()
				heal := s.trouble(o.write, o.table, state, atCommit)
				refused := s.post(o.path, key, o.body, http.StatusServiceUnavailable)
				refused.problem(503, "service_unavailable")
				require.NotEmpty(t, refused.header.Get("Retry-After"))
				require.Empty(t, s.redis.Keys(s.ctx, "idempotency:*:"+key).Val(), "the key is free")
				if o.write == "INSERT" {
					require.Equal(t, before, s.effect())
				}
				heal()
				done := s.do(request{method: "POST", path: o.path, key: key, body: o.body, replica: 1})
				require.Equal(t, http.StatusCreated, done.status, done.body)
				require.False(t, done.replayed())
				after := s.effect()
				again := s.post(o.path, key, o.body, http.StatusCreated)
				require.True(t, again.replayed())
				requireSame(t, done, again)
				require.Equal(t, after, s.effect())
			}
		}
	}
	require.Zero(t, value[int](s, `SELECT count(*) FROM payments WHERE status = 'processing'`))
	require.Zero(t, value[int](s, `SELECT count(*) FROM refunds WHERE status = 'processing'`))
}
