package httpapi

import (
	"context"
	"errors"

	"github.com/oncepay/oncepay/api"
	"github.com/oncepay/oncepay/idempotency"
	"github.com/oncepay/oncepay/internal/checkout"
)

const (
	// keyRoute has a key in its path.
	keyRoute = basePath + "/idempotency-keys/{key}"
	// operationPay is the one whose resource can be read while it is in progress.
	operationPay = "pay_order"
)

// GetIdempotencyKey implements GET /idempotency-keys/{key}. The authority knows best, and is asked
// last, so that what it doesn't know was not finished when the store was asked.
func (h handlers) GetIdempotencyKey(ctx context.Context, r api.GetIdempotencyKeyRequestObject) (api.GetIdempotencyKeyResponseObject, error) {
	account := accountOf(ctx)
	record, recordErr := idempotency.Lookup(ctx, h.records, account.String(), r.Key)
	key, err := h.service.Key(ctx, account, r.Key)
	switch {
	case err == nil:
		return api.GetIdempotencyKey200JSONResponse(wireKey(key)), nil
	case !errors.Is(err, checkout.ErrKeyNotFound):
		return nil, err
	case recordErr != nil: // a request may be under way
		return nil, checkout.Unavailable("look up the idempotency record", recordErr)
	case record != nil && record.Status == idempotency.StatusInProgress:
		return api.GetIdempotencyKey200JSONResponse{Key: r.Key, State: api.KeyStateStateInProgress, CreatedAt: instant(record.CreatedAt)}, nil
	}
	return nil, err
}

func wireKey(k checkout.Key) api.KeyState {
	out := api.KeyState{Key: k.Key, State: api.KeyStateState(k.State), Operation: optional(k.Operation),
		Resource: optional(resourceOf(k)), CreatedAt: instant(k.CreatedAt)}
	if k.State != checkout.KeyInProgress {
		status, completed, expires := int32(contentOf(k.Answer).Status), instant(k.CompletedAt), instant(k.ExpiresAt)
		out.ResponseStatus, out.CompletedAt, out.ExpiresAt = &status, &completed, &expires
	}
	return out
}

// resourceOf is the path of what the key led to, or is leading to.
func resourceOf(k checkout.Key) string {
	if k.State == checkout.KeyInProgress && k.Operation == operationPay && k.Resource != nil {
		return at("payments", *k.Resource)
	}
	return k.Path
}
