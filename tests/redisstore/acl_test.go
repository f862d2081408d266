package redisstore_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/idempotency/redisstore"
	"github.com/oncepay/oncepay/internal/testenv"
)

// TestACLRules_AreMinimal takes each permission away: the server then refuses something that is
// done. TestStore_PassesTheSuite shows that all of them together suffice.
func TestACLRules_AreMinimal(t *testing.T) {
	t.Parallel()
	for rule := range strings.FieldsSeq(redisstore.ACLRules) {
		command, granted := strings.CutPrefix(rule, "+")
		if !granted {
			continue
		}
		t.Run(command, func(t *testing.T) {
			t.Parallel()
			server := testenv.RedisServer(t)
			admin := openPatient(t, server.URL)
			client := openPatient(t, asUser(t, server.URL, redisstore.ACLRules+" -"+command, server))
			store := closing(t, redisstore.New(client))
			_, stop := store.Watch("acct_1", "key")
			defer stop()
			_ = redisstore.CheckServer(t.Context(), client)
			_ = client.Ping(t.Context()).Err() // as the service's readiness does
			_, _ = store.Lookup(t.Context(), "acct_1", "key")
			for name, step := range steps {
				record := pending(name)
				if step.acquired {
					_, err := redisstore.New(admin).Acquire(t.Context(), record, time.Minute)
					require.NoError(t, err)
				}
				_ = step.take(t.Context(), store, record)
			}
			require.Eventually(t, func() bool {
				return strings.Contains(fmt.Sprint(admin.Do(t.Context(), "ACL", "LOG").Val()), "object:"+command+" ")
			}, patience, 10*time.Millisecond, "nothing was refused")
		})
	}
}
