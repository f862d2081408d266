package cardnumber

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestContains_FindsThem(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"4242424242424242",
		"4242 4242 4242 4242",
		"4242-4242-4242-4242",
		"4242 – 4242 – 4242 – 4242",
		"4242\u00a04242\u00a04242\u00a04242",
		"378282246310005",                                 // American Express
		"3782 822463 10005",                               // as printed on the card
		"5555555555554444",                                // Mastercard
		"2223003122003222",                                // Mastercard, 2-series
		"6011111111111117",                                // Discover
		"30569309025904",                                  // Diners Club
		"3530111333300000",                                // JCB
		"6200000000000005",                                // UnionPay
		"4222222222222",                                   // the old Visa of 13 digits
		"4222 222 222 222",                                // as printed on the card
		"3056 930902 5904",                                // Diners Club, as printed
		"6304 0000 0000 0000 000", "620550 0000000000004", // Maestro, UnionPay
		"6304000000000000000",    // Maestro of 19 digits
		"card: 4242424242424242", // and in the middle of something
		"please charge 4242 4242 4242 4242.",
		"4242424242424242. Thanks", "No.4242424242424242", ".4242424242424242",
		"4242 4242 4242 4242 12/27 123",
		"order 17 4242424242424242",
		"no:4242424242424242,thanks",
	} {
		require.True(t, Contains(text), text)
	}
}

func TestContains_IgnoresOrdinaryValues(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"",
		"4242424242424243",               // fails the check
		"424242424242",                   // too short
		"42424242424242424242",           // too long
		"1000000000000",                  // the largest amount
		"9223372036854775807",            // the largest integer
		"1732160733006", "1732160733009", // Unix milliseconds, one of which passes the check
		"1732160733123452",                     // Unix microseconds
		"2026-11-21T03:45:10.123456789Z",       // RFC 3339
		"2026-11-21 03 45 10 123456",           // and looser
		"tok_4242424242424242",                 // part of an identifier
		"4242424242424242a",                    //
		"40011112-2223-4333-8444-555566667777", // UUIDs
		"42424242-4242-4242-b242-424242424242",
		"0.4242424242424242", "4242424242424242.5", "-0.5140747198128403", // numbers with a fraction
		"9780306406157",                      // ISBN-13
		"4-1732160733001", "3-1732160733003", // a counter and milliseconds
		"4242-1732160732", "4242 1732160732", // or seconds
	} {
		require.False(t, Contains(text), text)
	}
}

// withCheckDigit completes a number so that it passes the check.
func withCheckDigit(digits string) string {
	for _, last := range "0123456789" {
		if passesLuhn(digits + string(last)) {
			return digits + string(last)
		}
	}
	return ""
}

// TestContains_KnowsTheLengthsOfEachScheme has a number of each length for each prefix.
func TestContains_KnowsTheLengthsOfEachScheme(t *testing.T) {
	t.Parallel()
	for prefix, lengths := range map[string][]int{
		"4": {13, 16, 19}, "51": {16}, "55": {16}, "2221": {16}, "2720": {16}, "34": {15}, "37": {15},
		"300": {14}, "305": {14}, "3095": {14}, "36": {14}, "38": {14}, "39": {14},
		"3528": {16, 17, 18, 19}, "3589": {16, 17, 18, 19}, "6011": {16, 17, 18, 19}, "644": {16, 17, 18, 19}, "65": {16, 17, 18, 19},
		"62": {16, 17, 18, 19}, "81": {16, 17, 18, 19}, "2200": {16, 17, 18, 19}, "82": {16}, "9792": {16},
		"5018": {13, 14, 15, 16, 17, 18, 19}, "56": {13, 14, 15, 16, 17, 18, 19}, "6759": {13, 14, 15, 16, 17, 18, 19},
		"1": nil, "20": nil, "2220": nil, "2721": nil, "306": nil, "3527": nil, "3590": nil, "59": nil, "7": nil, "80": nil, "9": nil,
	} {
		for n := minCardDigits - 1; n <= 20; n++ {
			number := withCheckDigit(prefix + strings.Repeat("0", n-1-len(prefix)))
			require.Equal(t, slices.Contains(lengths, n), Contains(number), number)
		}
	}
}

// TestContains_IgnoresDigitsInOtherGroups has numbers that would be card numbers at once.
func TestContains_IgnoresDigitsInOtherGroups(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"42424242 42424242", "4 242424242424242", "42 4242 4242 4242 42", "4242 42424242 4242", "424242 4242424242",
		"3782 8224 6310 005", "378 282246 310005", "3056 9309 0259 04", "5-5-5-5-5-5-5-5-5-5-5-5-4-4-4-4",
	} {
		digits := strings.NewReplacer(" ", "", "-", "").Replace(text)
		require.True(t, Contains(digits), digits)
		require.False(t, Contains(text), text)
	}
}

func TestContains_IgnoresUUIDs(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		bytes := rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "bytes")
		id := uuid.Must(uuid.FromBytes(bytes)).String()
		require.False(t, Contains(id), id)
		require.False(t, Contains("order-"+id+"-1"), id)
	})
}

// Whatever is written around a card number, it is found, unless that makes it part of something
// else.
func TestContains_FindsThemInAnyText(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		around := rapid.StringMatching(`([a-z]{0,9}[ .,:;/("]){0,3}`)
		groups := rapid.SampledFrom([]string{"4242", "4242 4242 4242 4242", "4242-4242-4242-4242", "4242424242424242"})
		number := strings.Repeat("4242", 4)
		if drawn := groups.Draw(t, "groups"); drawn != "4242" {
			number = drawn
		}
		text := around.Draw(t, "before") + number + rapid.StringMatching(`([ .,:;/)"][a-z]{0,9}){0,3}`).Draw(t, "after")
		require.True(t, Contains(text), text)
	})
}

func BenchmarkContainsInLargestText(b *testing.B) {
	text := strings.Repeat("1 ", 64<<10/2)
	for b.Loop() {
		Contains(text)
	}
}
