package checkout

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestError_SaysWhatTheRequestLedTo(t *testing.T) {
	t.Parallel()
	lost := errors.New("lost")
	for outcome, errs := range map[RequestOutcome][]*Error{
		Done:          {nil},
		Refused:       {Declined("card_declined"), conflict("out_of_stock", ""), unprocessable("refund_exceeds_payment", "")},
		RefusedForNow: {NotFound("order"), payingNow(now), unknownProduct("tee"), invalid("no_items", ""), ErrKeyReused, ErrNewerAttemptRefused},
		InProgress:    {ErrKeyInProgress, KeyInProgressSince(now.Add(-time.Second))},
		Unknown:       {Unavailable("commit", lost), outcomeUnknown("payment", lost)},
	} {
		for _, err := range errs {
			require.Equal(t, outcome, err.Outcome(), "%v", err)
		}
	}
}
