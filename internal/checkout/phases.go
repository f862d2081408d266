package checkout

import (
	"context"
	"errors"
	"fmt"
)

// operate runs the three phases of an operation at the provider.
func operate[W any, T operation](ctx context.Context, s *Service, k kind[W, T], call Call, wanted W) (Answer, error) {
	begun, err := k.store.Begin(ctx, call, wanted)
	if err != nil {
		return Answer{}, err
	}
	if begun.Answer != nil {
		return *begun.Answer, nil
	}
	if begun.Call.Claim.Attempt > 1 {
		s.takeovers.Add(1)
	}
	result := k.send(ctx, begun.Taken)
	ctx, cancel := settling(ctx)
	defer cancel()
	if result.Outcome == OutcomeUnknown {
		return settledElsewhere(ctx, s, k, begun.Taken, result)
	}
	answer, err := k.store.Settle(ctx, begun.Taken, result)
	if overtaken(answer, err) {
		s.fencesLost.Add(1)
	}
	return answer, err
}

// overtaken says that a settlement lost its fence: it returned the answer of the attempt that
// settled, or there is none yet.
func overtaken(answer Answer, err error) bool {
	return errors.Is(err, ErrKeyInProgress) || (err == nil && answer.Replayed)
}

// settledElsewhere is for an attempt that did not learn the outcome, perhaps because it lost its
// lease: a retry, the reconciler or a provider event may have settled the operation meanwhile.
// Otherwise the outcome is unknown, and no attempt is running. So it is if the key is used for
// another request by now.
func settledElsewhere[W any, T operation](ctx context.Context, s *Service, k kind[W, T], begun Taken[T], result GatewayResult) (Answer, error) {
	key, err := s.store.Key(ctx, begun.Call.Account, begun.Call.Claim.Key)
	if err != nil || key.State == KeyInProgress || key.Fingerprint != begun.Call.Claim.Fingerprint {
		_ = k.store.PutOff(ctx, begun, result.ProviderID, unknownPause) // or else the reconciler waits for the grace
		return Answer{}, outcomeUnknown(k.name, fmt.Errorf("%s %s: %w", k.name, begun.Value.Common().ID, result.Cause))
	}
	if key.State == KeyExpired { // this attempt was paused for longer than its answer is kept
		return Answer{}, ExpiredKey(key.Path)
	}
	return key.Answer, nil
}

// settling is a context that outlives the handler's by at most SettleGrace. An attempt that has
// lost its lease may settle, too: the fence decides, not time.
func settling(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), SettleGrace)
}
