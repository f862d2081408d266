package books

import "slices"

// UpdateOrder is the operation that creates nothing: clients of a campaign cancel orders by it.
const UpdateOrder = "update_order"

// changesOnly are the other operations that create nothing. What they change counts its changes.
var changesOnly = []string{"put_product", "update_product", "update_customer"}

// payOrder is the operation whose key has the path of what it created.
const payOrder = "pay_order"

// oneKeyPerEffect checks that each order, settled payment, refund, top-up and cancellation has
// exactly one key.
func oneKeyPerEffect(b Books) (found []Violation) {
	keys, cancels, parts := map[string]int{}, map[string]int{}, map[string]int{}
	for _, row := range b.Keys {
		switch {
		case !row.Succeeded(), slices.Contains(changesOnly, row.Operation):
		case row.Parent != "":
			parts[row.Parent]++
		case row.Operation == UpdateOrder:
			cancels[row.Resource]++
		default:
			keys[row.Resource]++
		}
	}
	check := func(kind, id, parent string) {
		n := keys[id]
		if n == 0 && parts[parent] > 0 {
			n, parts[parent] = 1, parts[parent]-1
		}
		if n != 1 {
			found = append(found, Broken(OneKeyPerEffect, "%s %s has %d keys", kind, id, n))
		}
		delete(keys, id)
	}
	for _, o := range b.Orders {
		check("order", o.ID, "")
		if isCancelled := o.Status == "cancelled"; isCancelled != (cancels[o.ID] == 1) || cancels[o.ID] > 1 {
			found = append(found, Broken(OneKeyPerEffect, "order %s is %s, and was cancelled by %d keys", o.ID, o.Status, cancels[o.ID]))
		}
	}
	for _, p := range b.Paid() {
		check("payment", p.ID, "")
	}
	for _, r := range b.Refunded() {
		check("refund", r.ID, r.Payment)
	}
	for _, t := range b.TopUps {
		check("top-up", t.ID, t.Customer)
	}
	for customer := range b.Wallets {
		check("customer", customer, "")
	}
	for parent, n := range parts {
		if n > 0 {
			found = append(found, Broken(OneKeyPerEffect, "%d expired keys promise more of %s than there is", n, parent))
		}
	}
	for id, n := range keys {
		found = append(found, Broken(OneKeyPerEffect, "%d keys promise %s, which is not there", n, id))
	}
	return found
}

// owners are the keys of orders, payments, refunds and top-ups; of a paid order it is the
// payment's.
func (b Books) owners() map[string]KeyID {
	keys := map[string]KeyID{}
	for _, row := range b.Keys {
		keys[row.Resource] = row.KeyID
	}
	for _, p := range b.Payments {
		if key, ok := keys[p.ID]; ok {
			keys[p.Order] = key
		}
	}
	return keys
}

// Unfinished finds what is not at its end: keys in progress, and payments and refunds processing.
func Unfinished(b Books) (found []Violation) {
	for _, row := range b.Keys {
		if row.Status == "in_progress" {
			found = append(found, Broken(NothingOpen, "the authority's row is in progress").Of(row.KeyID))
		}
	}
	for _, name := range b.Pending {
		found = append(found, Broken(NothingOpen, "Redis record %s", name))
	}
	for _, p := range b.Payments {
		if p.Status == processing {
			found = append(found, Broken(NothingOpen, "payment %s is processing", p.ID))
		}
	}
	for _, r := range b.Refunds {
		if r.Status == processing {
			found = append(found, Broken(NothingOpen, "refund %s is processing", r.ID))
		}
	}
	return found
}
