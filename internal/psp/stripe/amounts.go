package stripe

import (
	"slices"
	"strings"

	"github.com/stripe/stripe-go/v85"

	"github.com/oncepay/oncepay/internal/checkout"
)

// Stripe's amounts (docs.stripe.com/currencies; for three decimals, that page as of 2023). The
// country of an account decides about the smallest charge and a few currencies, so Stripe judges
// both itself when it is asked.
var (
	// charged are the currencies that its API accepts.
	charged = strings.Fields(`
		AED AFN ALL AMD AOA ARS AUD AWG AZN BAM BBD BDT BHD BIF BMD BND BOB BRL BSD BTN BWP BYN BZD CAD CDF CHF CLP CNY COP
		CRC CVE CZK DJF DKK DOP DZD EGP ETB EUR FJD FKP GBP GEL GHS GIP GMD GNF GTQ GYD HKD HNL HTG HUF IDR ILS INR ISK JMD
		JOD JPY KES KGS KHR KMF KRW KWD KYD KZT LAK LBP LKR LRD LSL MAD MDL MGA MKD MMK MNT MOP MUR MVR MWK MXN MYR MZN
		NAD NGN NIO NOK NPR NZD OMR PAB PEN PGK PHP PKR PLN PYG QAR RON RSD RUB RWF SAR SBD SCR SEK SGD SHP SLE SOS SRD
		SVC SZL THB TJS TND TOP TRY TTD TWD TZS UAH UGX USD UYU UZS VND VUV WST XAF XCD XCG XOF XPF YER ZAR ZMW`)

	// asHundredths have no minor unit, and hundredths at Stripe that are always 00.
	asHundredths = []string{"ISK", "UGX"}
	// asWhole has hundredths, and no minor unit at Stripe.
	asWhole = "MGA"
	// inTens have thousandths, the last digit of which is 0 at Stripe.
	inTens = []string{"BHD", "JOD", "KWD", "OMR", "TND"}
)

// maxCharge is the largest amount in Stripe's units, by currency; others have 8 digits. LBP, COP,
// HUF and JPY have more digits than an amount of ours.
var maxCharge = map[string]int64{"IDR": 999_999_999_999, "INR": 999_999_999,
	"LBP": checkout.MaxAmount, "COP": checkout.MaxAmount, "HUF": checkout.MaxAmount, "JPY": checkout.MaxAmount}

// Supports reports whether Stripe can charge the amount.
func (g *Gateway) Supports(amount checkout.Money) bool {
	most, ok := maxCharge[amount.Currency]
	if !ok {
		most = 99_999_999
	}
	units, exact := unitsOf(amount)
	return exact && units <= most && slices.Contains(charged, amount.Currency)
}

// unitsOf is the amount in Stripe's units; false where Stripe has none for it.
func unitsOf(m checkout.Money) (int64, bool) {
	switch {
	case slices.Contains(asHundredths, m.Currency):
		return m.Amount * 100, m.Amount <= checkout.MaxAmount
	case m.Currency == asWhole:
		return m.Amount / 100, m.Amount%100 == 0
	}
	return m.Amount, !slices.Contains(inTens, m.Currency) || m.Amount%10 == 0
}

// moneyOf is the amount of an object of Stripe. It is no amount of ours, zero, where Stripe's is no
// whole number of minor units.
func moneyOf(units int64, currency stripe.Currency) checkout.Money {
	m := checkout.Money{Amount: units, Currency: strings.ToUpper(string(currency))}
	switch {
	case m.Currency == asWhole:
		m.Amount *= 100
	case slices.Contains(asHundredths, m.Currency) && units%100 != 0:
		m.Amount = 0
	case slices.Contains(asHundredths, m.Currency):
		m.Amount /= 100
	}
	return m
}
