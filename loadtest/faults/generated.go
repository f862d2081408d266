package main

import (
	"context"
	"fmt"

	"github.com/oncepay/oncepay/loadtest/faults/conformance"
)

// sendGenerated sends generated requests to nginx and to a replica after all faults, and keeps what
// they found.
func (c *campaign) sendGenerated(ctx context.Context) (err error) {
	if c.cfg.Generated == 0 || c.cfg.other() {
		return nil
	}
	c.generated, err = conformance.Run(ctx, conformance.Config{
		Endpoints: map[string]string{"nginx": c.wire.Endpoints["nginx"], "api-1": c.wire.Endpoints["api-1"]},
		APIKey:    accounts[1], Customers: c.shop.Customers[accounts[1]], SKUs: []string{"generated-a", "generated-b"},
		Requests: c.cfg.Generated, Seed: c.cfg.Seed,
	})
	if err != nil {
		return fmt.Errorf("send generated requests: %w", err)
	}
	return nil
}
