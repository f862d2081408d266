package mailer

import (
	"fmt"
	"net/mail"
	"strings"
	"unicode"

	"github.com/bojanz/currency"
	gomail "github.com/wneessen/go-mail"
)

// texts are what a mail says, by the type of its event.
var texts = map[string]struct{ subject, body string }{
	"order.placed":      {"Your order %s", "Hello %s,\n\nwe have your order %s over %s.\n"},
	"payment.succeeded": {"Your payment of order %s", "Hello %s,\n\nyour order %s is paid: %s.\n"},
}

// message renders a mail. All of its copies are the same, unless the customer has changed
// meanwhile. Whatever is the customer's is encoded, so that it cannot add a header (RFC 2047; RFC
// 5322, section 2.2).
func (s *Server) message(m Mail) *gomail.Msg {
	text := texts[m.Event]
	name := strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.In(r, unicode.Bidi_Control, unicode.Zl, unicode.Zp) {
			return ' ' // a name adds no lines to the text, and turns none around
		}
		return r
	}, m.Name)
	message := gomail.NewMsg(gomail.WithNoDefaultUserAgent())
	message.FromMailAddress(s.from)
	message.ToMailAddress(&mail.Address{Name: m.Name, Address: m.Address})
	message.Subject(fmt.Sprintf(text.subject, m.Order))
	message.SetMessageIDWithValue(m.EventID.String() + "@" + s.domain())
	message.SetDateWithValue(m.Created)
	message.SetGenHeader("Auto-Submitted", "auto-generated") // RFC 3834: no answer by a machine
	message.SetBodyString(gomail.TypeTextPlain, fmt.Sprintf(text.body, name, m.Order, amount(m.Amount, m.Currency)))
	return message
}

// amount writes minor units as people do.
func amount(minor int64, code string) string {
	amount, err := currency.NewAmountFromInt64(minor, code)
	if err != nil { // an earlier release took three capital letters, whatever they meant
		return fmt.Sprintf("%d minor units of %s", minor, code)
	}
	return amount.String()
}
