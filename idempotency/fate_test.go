package idempotency_test

import (
	"errors"
	"net/http"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/idempotency"
	"github.com/oncepay/oncepay/idempotency/internal/faulty"
)

// likeAProxy is the policy of a handler that asks an upstream, as in the package's documentation.
var likeAProxy = idempotency.Policy{
	UnknownFor: time.Minute,
	Fate: func(status int, _ http.Header) idempotency.Fate {
		switch status {
		case http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
			return idempotency.FateUnknown
		}
		return idempotency.FateByDefault
	},
}

// TestFate_IsSaidByTheClaimThenThePolicyThenTheDefault: of each answer, whether a retry is a
// replay.
func TestFate_IsSaidByTheClaimThenThePolicyThenTheDefault(t *testing.T) {
	t.Parallel()
	keep, release := (*idempotency.Claim).Keep, (*idempotency.Claim).Release
	for name, tt := range map[string]struct {
		code   int
		policy idempotency.Fate
		claim  func(*idempotency.Claim)
		kept   bool
	}{
		"a policy keeps a 404":             {code: 404, policy: idempotency.FateKept, kept: true},
		"a policy releases a 409":          {code: 409, policy: idempotency.FateReleased},
		"no policy keeps a 500":            {code: 500, policy: idempotency.FateKept},
		"a claim keeps a 307":              {code: 307, claim: keep, kept: true},
		"a claim keeps a 403":              {code: 403, claim: keep, policy: idempotency.FateReleased, kept: true},
		"no claim keeps a 503":             {code: 503, claim: keep},
		"a claim releases a 201":           {code: 201, claim: release, policy: idempotency.FateKept},
		"of two words the last one counts": {code: 404, claim: func(c *idempotency.Claim) { c.Release(); c.Keep() }, kept: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			policy := idempotency.Policy{Fate: func(status int, header http.Header) idempotency.Fate {
				require.Equal(t, strconv.Itoa(status), header.Get("X-Status"))
				return tt.policy
			}}
			b := setup(t, policy, func(w http.ResponseWriter, r *http.Request) {
				if tt.claim != nil {
					tt.claim(idempotency.ClaimFrom(r.Context()))
				}
				w.Header().Set("X-Status", strconv.Itoa(tt.code))
				w.WriteHeader(tt.code)
			})
			first, again := b.post(t, "key", ""), b.post(t, "key", "")
			require.Equal(t, tt.code, first.Code)
			require.Equal(t, tt.code, again.Code)
			require.Equal(t, tt.kept, again.Header().Get(idempotency.HeaderReplay) == "true")
			require.Equal(t, map[bool]int{true: 1, false: 2}[tt.kept], b.ran())
		})
	}
}

// TestFateUnknown_KeepsTheKeyInProgress: until UnknownFor is over nothing runs, and no heartbeat is
// needed for that.
func TestFateUnknown_KeepsTheKeyInProgress(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		policy  idempotency.Policy
		unknown time.Duration
		handle  func(http.ResponseWriter, *http.Request)
	}{
		"of the policy": {likeAProxy, time.Minute, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) }},
		"of a policy that panics": {idempotency.Policy{Fate: func(int, http.Header) idempotency.Fate { panic("a bug") }}, idempotency.DefaultLease,
			func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) }},
		"of the claim, for the lease": {idempotency.Policy{}, idempotency.DefaultLease, func(w http.ResponseWriter, r *http.Request) {
			idempotency.ClaimFrom(r.Context()).Unknown()
			w.WriteHeader(http.StatusBadGateway)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				b := setup(t, tt.policy, tt.handle)
				require.Equal(t, http.StatusBadGateway, b.post(t, "key", "").Code)
				require.Equal(t, []string{"acquire", "extend"}, b.store.Taken())
				time.Sleep(tt.unknown - time.Millisecond)
				w := b.post(t, "key", "")
				requireProblem(t, w, http.StatusConflict, idempotency.CodeInProgress)
				require.Equal(t, "1", w.Header().Get("Retry-After"))
				require.Equal(t, 1, b.ran())
				time.Sleep(time.Millisecond)
				require.Equal(t, http.StatusBadGateway, b.post(t, "key", "").Code)
				require.Equal(t, 2, b.ran())
			})
		})
	}
}

// TestFateUnknown_LastsAsLongIfTheProcessDies before it has completed the record.
func TestFateUnknown_LastsAsLongIfTheProcessDies(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setup(t, likeAProxy, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusCreated) })
		b.store.Fail = faulty.On(faulty.Complete, errors.New("killed"))
		require.Equal(t, http.StatusCreated, b.post(t, "key", "").Code)
		time.Sleep(59 * time.Second)
		requireProblem(t, b.post(t, "key", ""), http.StatusConflict, idempotency.CodeInProgress)
		b.store.Fail = nil
		time.Sleep(2 * time.Second)
		require.Equal(t, http.StatusCreated, b.post(t, "key", "").Code)
		require.Equal(t, 2, b.ran())
	})
}

// TestFateUnknown_OfAHandlerThatIsLate: its 503 has the fate that the policy says.
func TestFateUnknown_OfAHandlerThatIsLate(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		policy := idempotency.Policy{Fate: func(status int, _ http.Header) idempotency.Fate {
			require.Equal(t, http.StatusServiceUnavailable, status)
			return idempotency.FateUnknown
		}}
		b := setup(t, policy, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
		requireProblem(t, b.post(t, "key", ""), http.StatusServiceUnavailable, idempotency.CodeRequestTimeout)
		requireProblem(t, b.post(t, "key", ""), http.StatusConflict, idempotency.CodeInProgress)
	})
}
