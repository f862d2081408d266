package httpapi

import (
	"strconv"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
)

func TestCursor_RoundTrips(t *testing.T) {
	t.Parallel()
	product := makeCursor(productCursor, "tee-black")
	sku, err := afterSKU(&product)
	require.NoError(t, err)
	require.Equal(t, "tee-black", sku)

	id := uuid.New()
	order := makeCursor(orderCursor, id.String())
	before, err := beforeID(orderCursor, &order)
	require.NoError(t, err)
	require.Equal(t, id, *before)
}

func TestCursor_NoneIsTheStart(t *testing.T) {
	t.Parallel()
	sku, err := afterSKU(nil)
	require.NoError(t, err)
	require.Empty(t, sku)
	before, err := beforeID(orderCursor, nil)
	require.NoError(t, err)
	require.Nil(t, before)
}

func TestCursor_BadIsRefused(t *testing.T) {
	t.Parallel()
	id := uuid.NewString()
	for name, cursor := range map[string]string{
		"not base64":        "%%%",
		"padded":            makeCursor(productCursor, "a") + "==",
		"no kind":           makeCursor("", "tee-black"),
		"older version":     makeCursor("p0:", "tee-black"),
		"not an identifier": makeCursor(productCursor, "Tee\x00"),
		"nothing":           makeCursor(productCursor, ""),
		"other order kind":  makeCursor(orderCursor, "tee-black"),
		"odd UUID":          makeCursor(orderCursor, "urn:uuid:"+id),
		"bare UUID":         id,
	} {
		_, err := afterSKU(&cursor)
		require.ErrorIs(t, err, errInvalidCursor, name)
		_, err = beforeID(orderCursor, &cursor)
		require.ErrorIs(t, err, errInvalidCursor, name)
	}
	mixed := makeCursor(orderCursor, id)
	_, err := afterSKU(&mixed)
	require.ErrorIs(t, err, errInvalidCursor)
}

func TestPage_CutsTheItemTooMany(t *testing.T) {
	t.Parallel()
	items, next := page([]int{1, 2, 3}, 2, strconv.Itoa)
	require.Equal(t, []int{1, 2}, items)
	require.Equal(t, "2", *next)
	items, next = page([]int{1, 2}, 2, strconv.Itoa)
	require.Equal(t, []int{1, 2}, items)
	require.Nil(t, next)
}
