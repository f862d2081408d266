package books

import "slices"

// UpdateOrder is the operation that creates nothing: clients of a campaign cancel orders by it.
const UpdateOrder = "update_order"

// changesOnly are the other operations that create nothing. What they change counts its changes.
var changesOnly = []string{"put_product", "update_product", "update_customer"}

// oneKeyPerEffect checks that each order, settled payment, refund, top-up and cancellation has
// exactly one key. An expired key of a refund or a top-up knows only what that is a part of.
func oneKeyPerEffect(b Books) []Violation {
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
	want, cancelled := map[string]int{}, map[string]int{}
	effect := func(id, parent string) {
		want[id] = 1
		if keys[id] == 0 && parts[parent] > 0 {
			keys[id] = 1
			parts[parent]--
		}
	}
	for _, o := range b.Orders {
		effect(o.ID, "")
		if o.Status == "cancelled" {
			cancelled[o.ID] = 1
		}
	}
	for _, p := range b.Paid() {
		effect(p.ID, "")
	}
	for _, r := range b.Refunded() {
		effect(r.ID, r.Payment)
	}
	for _, t := range b.TopUps {
		effect(t.ID, t.Customer)
	}
	for customer := range b.Wallets {
		effect(customer, "")
	}
	return slices.Concat(Differ(OneKeyPerEffect, "keys of", want, keys, nil), Differ(OneKeyPerEffect, "keys that cancelled", cancelled, cancels, nil),
		Differ(OneKeyPerEffect, "further expired keys of", nil, parts, nil))
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
