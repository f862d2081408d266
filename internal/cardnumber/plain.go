package cardnumber

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

func isASCII(text string) bool {
	for i := range len(text) {
		if text[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// hidden are the characters that nobody sees, or that are drawn over the one before.
var hidden = []*unicode.RangeTable{unicode.Cf, unicode.M, unicode.Other_Default_Ignorable_Code_Point}

// dashes are those of other categories than Pd. Japanese keyboards write the first one, which makes
// a vowel longer, with the key of the dash.
const dashes = "ーｰ−˗⁃─━"

// between is what a character becomes that ends a group of digits and is no mark between two.
const between = ';'

// plain is the text in ASCII, as far as [containsPlain] looks at it: digits of all scripts, spaces,
// dashes, marks, and x for a Latin letter. Other letters are no part of an identifier: Chinese and
// Japanese put none between a word and a number. Hidden characters become another one, or are left
// out if it is negative; plain reports whether there were any.
func plain(text string, instead rune) (ascii string, hid bool) {
	ascii = strings.Map(func(r rune) rune {
		switch {
		case r < utf8.RuneSelf:
			return r
		case unicode.In(r, hidden...):
			hid = true
			return instead
		case strings.ContainsRune(dashes, r), unicode.Is(unicode.Pd, r):
			return '-'
		case unicode.IsSpace(r), unicode.In(r, unicode.Zs):
			return ' '
		case unicode.Is(unicode.Nd, r):
			return digitOf(r)
		case unicode.IsLetter(r) && unicode.Is(unicode.Latin, r) && !unicode.Is(unicode.Lo, r): // not ª and º
			return 'x'
		case unicode.IsLetter(r):
			return between
		case strings.ContainsRune("·・•‧∙⋅｡。", r): // points in the middle of a line, and full stops
			return '.'
		}
		return compatible(r)
	}, text)
	return ascii, hid
}

// digitOf is a decimal digit of any script in ASCII. Each script has its ten in a row (Unicode
// Standard, section 4.6).
func digitOf(r rune) rune {
	for _, of := range unicode.Nd.R16 {
		if r >= rune(of.Lo) && r <= rune(of.Hi) {
			return '0' + (r-rune(of.Lo))%10
		}
	}
	for _, of := range unicode.Nd.R32 {
		if r >= rune(of.Lo) && r <= rune(of.Hi) {
			return '0' + (r-rune(of.Lo))%10
		}
	}
	return between
}

// compatible is the ASCII character that a sign is a form of, such as a raised 2 or a wide full
// stop (Unicode Standard Annex 15, NFKC).
func compatible(r rune) rune {
	if form := norm.NFKC.String(string(r)); len(form) == 1 {
		return rune(form[0])
	}
	return between
}
