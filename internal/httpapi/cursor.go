package httpapi

import (
	"encoding/base64"
	"net/http"
	"regexp"
	"strings"

	"github.com/google/uuid"
)

// Cursors name the last item of a page. Each list has its own kind with a version, so that a cursor
// of another list, or of an older meaning, is refused instead of misread.
const (
	productCursor = "p1:"
	orderCursor   = "o1:"
	paymentCursor = "y1:"
	refundCursor  = "r1:"
)

var errInvalidCursor = problem{status: http.StatusBadRequest, code: "invalid_cursor",
	detail: "cursor must be the next_cursor of an earlier page."}

const defaultLimit = 20 // as the API description says

func makeCursor(kind, last string) string {
	return base64.RawURLEncoding.EncodeToString([]byte(kind + last))
}

func readCursor(kind, cursor string) (string, error) {
	text, err := base64.RawURLEncoding.DecodeString(cursor)
	last, ours := strings.CutPrefix(string(text), kind)
	if err != nil || !ours || makeCursor(kind, last) != cursor { // the decoder skips line breaks, and unused bits
		return "", errInvalidCursor
	}
	return last, nil
}

var skuText = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,63}$`)

// afterSKU reads the cursor of a list of products; none is the start.
func afterSKU(cursor *string) (string, error) {
	if cursor == nil {
		return "", nil
	}
	sku, err := readCursor(productCursor, *cursor)
	if err == nil && !skuText.MatchString(sku) {
		err = errInvalidCursor
	}
	return sku, err
}

// beforeID reads the cursor of a list that begins with the newest; none is the beginning.
func beforeID(kind string, cursor *string) (*uuid.UUID, error) {
	if cursor == nil {
		return nil, nil
	}
	text, err := readCursor(kind, *cursor)
	if err != nil {
		return nil, err
	}
	id, err := uuid.Parse(text)
	if err != nil || id.String() != text {
		return nil, errInvalidCursor
	}
	return &id, nil
}

// page cuts a list that was asked for one item more than wanted, and makes the cursor of the next
// page if there is one.
func page[T any](items []T, limit int32, cursor func(last T) string) ([]T, *string) {
	if len(items) <= int(limit) {
		return items, nil
	}
	items = items[:limit]
	next := cursor(items[limit-1])
	return items, &next
}

func limitOf(limit *int32) int32 {
	if limit == nil {
		return defaultLimit
	}
	return *limit
}
