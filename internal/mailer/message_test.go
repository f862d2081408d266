package mailer

import (
	"bytes"
	"maps"
	"mime"
	"net/mail"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/bojanz/currency"
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
)

// TestMessage_TakesNoHeaderFromACustomer: whatever the name and the address are, the headers are
// ours.
func TestMessage_TakesNoHeaderFromACustomer(t *testing.T) {
	t.Parallel()
	server, err := NewServer("smtp://127.0.0.1", "shop@example.com")
	require.NoError(t, err)
	for _, name := range []string{"Ada", "Ada\r\nBcc: eve@example.com", "Ada\n\nBuy this", "Ada\rX: y", "\"Ada\" <eve@example.com>,", "王小明", "=?utf-8?q?=0d=0aBcc:?=",
		"A, B <c@d>", "\x00\x7f", "a\u2028Bcc: x"} {
		for _, address := range []string{"ada@example.com", "ada@example.com\r\nBcc: eve@example.com", "\"a b\"@example.com", "用戶@例子.台灣"} {
			var raw bytes.Buffer
			m := Mail{EventID: uuid.New(), Event: "payment.succeeded", Order: uuid.New(), Currency: "USD", Name: name, Address: address, Created: time.Now()}
			_, err := server.message(m).WriteTo(&raw)
			require.NoError(t, err)
			got, err := mail.ReadMessage(&raw)
			require.NoError(t, err, "%q %q", name, address)
			require.ElementsMatch(t, []string{"From", "To", "Subject", "Message-Id", "Date", "Mime-Version", "Auto-Submitted", "Content-Type", "Content-Transfer-Encoding"},
				slices.Collect(maps.Keys(got.Header)), "%q %q", name, address)
			require.Len(t, got.Header["To"], 1)
			to, err := (&mail.AddressParser{WordDecoder: new(mime.WordDecoder)}).ParseList(got.Header.Get("To"))
			if err == nil {
				require.Len(t, to, 1, "%q %q", name, address)
				require.Equal(t, name, to[0].Name)
			} else {
				require.Contains(t, address, "\r\n", "only an address that no customer can have")
			}
		}
	}
}

// TestMessage_TakesNoLineFromACustomer: the text is ours but for a name in one line.
func TestMessage_TakesNoLineFromACustomer(t *testing.T) {
	t.Parallel()
	server, err := NewServer("smtp://127.0.0.1", "shop@example.com")
	require.NoError(t, err)
	text := func(name string) string {
		parts := server.message(Mail{Event: "order.placed", Currency: "USD", Name: name, Address: "ada@example.com"}).GetParts()
		require.Len(t, parts, 1)
		content, err := parts[0].GetContent()
		require.NoError(t, err)
		return string(content)
	}
	require.Equal(t, strings.Replace(text("Ada"), "Ada", "Ada  Pay again at http://evil.example", 1), text("Ada\r\nPay again at http://evil.example"))
	require.Equal(t, strings.Replace(text("Ada"), "Ada", "Ada  Bob", 1), text("Ada\u202e\u2028Bob"))
}

func TestAmount_IsWrittenAsPeopleDo(t *testing.T) {
	t.Parallel()
	for want, got := range map[string]string{
		"39.00 USD": amount(3900, "USD"), "0.05 EUR": amount(5, "EUR"), "500 JPY": amount(500, "JPY"), "1.234 KWD": amount(1234, "KWD"),
		"10000000000.00 USD": amount(1_000_000_000_000, "USD"), "7 minor units of QQQ": amount(7, "QQQ"),
	} {
		require.Equal(t, want, got)
	}
}

// TestAmount_HasTheDigitsOfISO4217: the table is ISO's own list (six-group.com, "List one" of
// 2026-01-01), in which every other currency has two digits.
func TestAmount_HasTheDigitsOfISO4217(t *testing.T) {
	t.Parallel()
	written := map[int]string{0: "1234567", 2: "12345.67", 3: "1234.567", 4: "123.4567"}
	digits := map[string]int{}
	for n, codes := range map[int]string{
		0: "BIF CLP DJF GNF ISK JPY KMF KRW PYG RWF UGX UYI VND VUV XAF XOF XPF",
		3: "BHD IQD JOD KWD LYD OMR TND", 4: "CLF UYW",
	} {
		for code := range strings.FieldsSeq(codes) {
			require.True(t, currency.IsValid(code), code)
			digits[code] = n
		}
	}
	for _, code := range currency.GetCurrencyCodes() {
		n, listed := digits[code]
		if !listed {
			n = 2
		}
		require.Equal(t, written[n]+" "+code, amount(1_234_567, code))
	}
	for _, code := range []string{"XXX", "XTS", "XAU", "XDR", "ZZZ", "DEM", "usd", ""} {
		require.Equal(t, "1234567 minor units of "+code, amount(1_234_567, code))
	}
}

func TestNewServer_NamesTheWrongSettingAndNotThePassword(t *testing.T) {
	t.Parallel()
	for url, want := range map[string]string{
		"http://a:hunter2@mail.example.com": "MAIL_URL", "mail.example.com:25": "MAIL_URL", "smtp://a:hunter2@": "MAIL_URL",
		"smtp://a:hunter2@h:1x": "MAIL_URL", "smtp://h/path": "MAIL_URL", "smtp://h?tls=no": "MAIL_URL", "smtp://h:70000": "MAIL_URL",
	} {
		_, err := NewServer(url, "shop@example.com")
		require.ErrorContains(t, err, want, url)
		require.NotContains(t, err.Error(), "hunter2")
	}
	for _, from := range []string{"", "shop", "Shop <shop>", "a@b, c@d"} {
		_, err := NewServer("smtp://h", from)
		require.ErrorContains(t, err, "MAIL_FROM", from)
	}
	for url, port := range map[string]int{"smtp://h": 25, "smtp+starttls://h": 587, "smtps://u:p@h": 465, "smtps://h:2465": 2465} {
		server, err := NewServer(url, "Shop <shop@example.com>")
		require.NoError(t, err)
		require.Equal(t, port, server.port)
		require.Equal(t, url[:5] != "smtp:", server.RequiresTLS())
	}
}
