package cardnumber

import (
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

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

// TestContains_FindsThemInEveryScript has texts as people type them in other languages.
func TestContains_FindsThemInEveryScript(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"卡號4242 4242 4242 4242", "カード番号4242424242424242です", "카드번호4242-4242-4242-4242입니다", "บัตร4242424242424242", "卡号：4242 4242 4242 4242，谢谢",
		"карта4242424242424242", "بطاقة4242424242424242", "№4242424242424242", "nº4242424242424242",
		"４２４２４２４２４２４２４２４２", "４２４２　４２４２　４２４２　４２４２", "４２４２－４２４２－４２４２－４２４２", "４２４２ー４２４２ー４２４２ー４２４２", "4242ｰ4242ｰ4242ｰ4242",
		"4242−4242−4242−4242", "4242─4242─4242─4242", "4242‐4242‑4242—4242", "4242・4242・4242・4242", "4242·4242·4242·4242", "4242．4242．4242．4242",
		"٤٢٤٢ ٤٢٤٢ ٤٢٤٢ ٤٢٤٢", "४२४२४२४२४२४२४२४२", "4\ufe0f\u20e32\ufe0f\u20e34\ufe0f\u20e32\ufe0f\u20e3424242424242", "⁴²⁴²⁴²⁴²⁴²⁴²⁴²⁴²", "①" + "\u00a0４２４２４２４２４２４２４２４２",
		"4242.4242.4242.4242", "4242/4242/4242/4242", "4242,4242,4242,4242", "4242:4242:4242:4242", "4242_4242_4242_4242", "4242|4242|4242|4242", "3782.822463.10005",
		"order 17\u200b4242424242424242", "order 17\u200b4242\u200b4242\u200b4242\u200b4242",
	} {
		require.True(t, Contains(text), text)
	}
	for _, text := range []string{
		"订单号2026112812345678901", "注文2026年11月28日 03時45分10秒 123456", "電話 0912-345-678 / 02-2345-6789", "ＴＯＫ＿４２４２４２４２４２４２４２４２", "４２４２４２４２４２４２４２４２ａ",
		"é4242424242424242", "４．２４２４２４２４２４２４２４２４２", "4242年4242月4242日4242", "4242.4242.4242.4243", "4242.4242/4242.4242", "192.168.100.100:65535", "tok_x_4242_4242_4242_4242",
		"2026/11/28 03:45:10,123456", "12.345.678,90", "4,242,424,242,424,242", "東京都千代田区1-1-1 1000001 0312345678",
	} {
		require.False(t, Contains(text), text)
	}
}

// each calls visit with every character of the tables.
func each(visit func(rune), tables ...*unicode.RangeTable) {
	for r := rune(utf8.RuneSelf); r <= unicode.MaxRune; r++ {
		if unicode.In(r, tables...) {
			visit(r)
		}
	}
}

func TestContains_ReadsEveryDigitSpaceAndDash(t *testing.T) {
	t.Parallel()
	digits := 0
	each(func(r rune) {
		digits++
		require.Equal(t, rune('0'+(digits-1)%10), digitOf(r), "%U", r)
	}, unicode.Nd)
	require.Greater(t, digits, 600)
	between := func(r rune) {
		require.True(t, Contains(strings.Join([]string{"4242", "4242", "4242", "4242"}, string(r))), "%U", r)
	}
	each(between, unicode.Zs, unicode.Zl, unicode.Zp, unicode.Pd)
	each(between, hidden...)
	each(func(r rune) {
		require.True(t, unicode.IsDigit(r) || Contains(string(r)+"4242424242424242"+string(r)), "%U", r)
	}, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul, unicode.Bopomofo, unicode.Thai)
}

// TestContains_AllocatesNothingForOrdinaryTexts: it looks at every string of every request. No
// other test runs meanwhile, whose allocations would be counted.
func TestContains_AllocatesNothingForOrdinaryTexts(t *testing.T) { //nolint:paralleltest // see above
	for _, text := range []string{"Ada Lovelace", "4200", "/v1/orders/019aa4c2-7f5e-7abc-8def-0123456789ab", "王小明, 臺北市信義路５段７號", "2026-11-28"} {
		require.Zero(t, testing.AllocsPerRun(100, func() { Contains(text) }), text)
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
