package tiers

import (
	"context"
	"encoding/json"
	"net/url"
	"slices"

	"github.com/oncepay/oncepay/internal/stack"
	"github.com/oncepay/oncepay/internal/stack/mailsink"
)

// NewestMails lists the last few mails, the newest first, that the mail sink of a deployment has.
func NewestMails(ctx context.Context, at *stack.Topology) ([]mailsink.Mail, error) {
	var list struct{ Mails []mailsink.Mail }
	err := get(ctx, "http://"+at.Ops(stack.Mail)+"/v1/mails?limit=6", &list)
	slices.Reverse(list.Mails)
	return list.Mails, err
}

// Charges is what the audit list of the provider of a deployment has of an order.
func Charges(ctx context.Context, at *stack.Topology, order string) ([]Charge, error) {
	var list struct{ Data []Charge }
	err := get(ctx, "http://"+at.Addr(stack.PSP)+"/v1/charges?reference="+url.QueryEscape(order), &list)
	return list.Data, err
}

// get reads JSON.
func get(ctx context.Context, url string, into any) error {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	text, err := stack.Get(ctx, url)
	if err != nil {
		return err
	}
	return json.Unmarshal(text, into)
}
