package idempotency_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/idempotency"
)

type (
	text      string
	side      struct{ A int }
	sideTwo   struct{ A int }
	byPointer struct {
		*side
		B int
	}
	byName struct {
		text
		B int
	}
	stamped struct {
		time.Time
		ID string
	}
	ambiguous struct {
		side
		sideTwo
	}
	twoTimes struct { // has no MarshalJSON: it would be that of two fields
		time.Time
		big.Int
	}
	shadowed struct {
		side
		A int
	}
	oneWay  struct{ A int }
	halfWay struct {
		A int
		b int
	}
	ownWay struct { // embeds, and writes itself
		time.Time
		ID string
	}
	pointed struct{ a int } // its methods are those of the pointer
	latin   string
)

func (oneWay) MarshalJSON() ([]byte, error)    { return []byte(`"1"`), nil }
func (latin) MarshalText() ([]byte, error)     { return []byte("caf\xe9"), nil }
func (h halfWay) MarshalJSON() ([]byte, error) { return json.Marshal(map[string]int{"A": h.A}) }
func (o ownWay) MarshalJSON() ([]byte, error)  { return json.Marshal([]any{o.Time, o.ID}) }
func (o *ownWay) UnmarshalJSON(data []byte) error {
	return json.Unmarshal(data, &[]any{&o.Time, &o.ID})
}
func (p *pointed) MarshalJSON() ([]byte, error)    { return json.Marshal(p.a) }
func (p *pointed) UnmarshalJSON(data []byte) error { return json.Unmarshal(data, &p.a) }

// TestDo_RepeatsAResultOrSaysThatItIsNotKept: the first call returns it in either case.
func TestDo_RepeatsAResultOrSaysThatItIsNotKept(t *testing.T) {
	t.Parallel()
	at := time.Now() // with a monotonic clock
	for name, try := range map[string]func(*testing.T){
		"embedded pointer":  lost(byPointer{&side{1}, 2}),
		"promoted method":   lost(stamped{at, "ch_1"}),
		"ambiguous name":    lost(ambiguous{side{1}, sideTwo{2}}),
		"ambiguous method":  lost(twoTimes{at, *big.NewInt(1)}),
		"shadowed":          lost(shadowed{side{1}, 2}),
		"no inverse":        lost(oneWay{1}),
		"half an inverse":   lost(halfWay{1, 2}),
		"an error":          lost(struct{ E error }{errors.New("x")}),
		"a map of errors":   lost(map[string]error{"a": errors.New("x")}),
		"no UTF-8":          lost("caf\xe9"),
		"no UTF-8 in a map": lost(map[string]int{"\xe9": 1}),
		"an int in any":     lost(map[string]any{"id": int64(1<<53 + 1)}),
		"a struct in any":   lost[any](side{1}),
		"a map in any":      lost[any](map[string]int{"a": 1}),
		"a time in any":     lost[any](at),
		"a buffer in any":   lost[any](bytes.NewBufferString("a")),
		"methods in a map":  lost(map[string]pointed{"a": {1}}),
		"a function":        lost(func() {}),
		"nil error":         kept[error](nil),
		"nil pointer":       kept[*side](nil),
		"a time":            kept(at),
		"a time in a zone":  kept([]time.Time{at.In(time.FixedZone("x", 3600))}),
		"a pointer to one":  kept(&at),
		"an address":        kept(map[netip.Addr]*big.Int{netip.MustParseAddr("::1"): big.NewInt(5)}),
		"nil and empty": kept(struct {
			A, B []int
			C    map[string]int
		}{nil, []int{}, map[string]int{}}),
		"empty, left out": kept(struct {
			C map[string]int `json:",omitempty"`
		}{map[string]int{}}),
		"bytes": kept(struct {
			B []byte
			C [4]byte
		}{[]byte{0xff}, [4]byte{1}}),
		"JSON":               kept(json.RawMessage(`{"a": "<b>"}`)),
		"JSON in any":        kept[any](map[string]any{"a": []any{1.5, "x", nil, true}}),
		"its own method":     kept(ownWay{at, "ch_1"}),
		"a pointer's method": kept(pointed{1}),
		"an embedded struct": kept(struct {
			side
			B float64
		}{side{1}, 0.1}),
		"left out": kept(struct {
			A int
			B func() `json:"-"`
		}{A: 1}),
	} {
		t.Run(name, func(t *testing.T) { t.Parallel(); try(t) })
	}
	_, err := doOnce(t, byName{"x", 2})
	require.ErrorContains(t, err, "is not exported", "the type shows it")
}

// doOnce returns what the second call returns.
func doOnce[T any](t *testing.T, want T) (T, error) {
	t.Helper()
	s := setupWork(t, idempotency.Policy{}, nil)
	ran := 0
	work := func(context.Context) (T, error) { ran++; return want, nil }
	first, err := idempotency.Do(t.Context(), s.Keys, "key", nil, work)
	if err != nil {
		require.Zero(t, ran)
		return first, err
	}
	require.Equal(t, fmt.Sprintf("%#v", want), fmt.Sprintf("%#v", first))
	again, err := idempotency.Do(t.Context(), s.Keys, "key", nil, work)
	require.Equal(t, 1, ran)
	return again, err
}

func lost[T any](want T) func(*testing.T) {
	return func(t *testing.T) {
		t.Helper()
		_, err := doOnce(t, want)
		requireCode(t, idempotency.CodeResponseNotKept, err)
		require.ErrorContains(t, err, "does not come back from JSON")
	}
}

func kept[T any](want T) func(*testing.T) {
	return func(t *testing.T) {
		t.Helper()
		again, err := doOnce(t, want)
		require.NoError(t, err)
		a, err := json.Marshal(&want)
		require.NoError(t, err)
		b, err := json.Marshal(&again)
		require.NoError(t, err)
		require.Equal(t, string(a), string(b))
	}
}

// TestDo_RefusesRequestsThatJSONDoesNotWrite: two of them would be equal.
func TestDo_RefusesRequestsThatJSONDoesNotWrite(t *testing.T) {
	t.Parallel()
	s := setupWork(t, idempotency.Policy{}, counted())
	for name, request := range map[string]any{
		"a field":              struct{ id string }{"x"},
		"a field in any":       map[string]any{"a": []any{&struct{ id string }{"x"}}},
		"an embedded name":     byName{"x", 2},
		"promoted method":      stamped{time.Unix(0, 0), "ch_1"},
		"promoted, by pointer": &[]stamped{{time.Unix(0, 0), "ch_1"}},
		"ambiguous method":     twoTimes{},
		"ambiguous name":       ambiguous{side{1}, sideTwo{2}},
		"shadowed":             shadowed{side{1}, 2},
		"a buffer":             bytes.NewBufferString("a"),
		"a pointer's method":   pointed{1},
		"an error":             struct{ E error }{errors.New("x")},
		"no UTF-8":             "caf\xe9",
		"no UTF-8 inside":      []any{map[string]text{"a": "caf\xe9"}},
		"no UTF-8 in a name":   map[text]int{"caf\xe9": 1},
		"no UTF-8 of a method": latin(""),
	} {
		_, err := s.request(t.Context(), "key", request)
		require.ErrorContains(t, err, "the request cannot be compared", name)
		_, err = idempotency.Content{}.Key(request)
		require.ErrorContains(t, err, "the request cannot be compared", name)
	}
	require.Zero(t, s.ran())
	for name, request := range map[string]any{
		"nothing":            nil,
		"bytes":              []byte("caf\xe9"),
		"bytes inside":       struct{ B []byte }{[]byte("\xff")},
		"a map":              map[string]any{"a": 1, "b": []int{1}, "at": time.Now()},
		"a buffer's method":  json.RawMessage(`{"a": 1}`),
		"its own method":     ownWay{time.Unix(0, 0), "x"},
		"a pointer's method": &pointed{1},
		"embedded structs":   byPointer{&side{1}, 2},
		"embedded nil":       byPointer{nil, 2},
		"left out": struct {
			A int
			B func() `json:"-"`
		}{A: 1},
	} {
		_, err := s.request(t.Context(), name, request)
		require.NoError(t, err, name)
	}
}
