package idempotency_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/oncepay/oncepay/idempotency"
	"github.com/oncepay/oncepay/idempotency/memstore"
)

// A job that a queue delivers twice.
func ExampleDo() {
	keys := &idempotency.Keys{Store: memstore.New(), Scope: "receipts"} // several processes need redisstore or pgstore
	defer keys.Wait()
	mails := 0
	send := func(context.Context) (string, error) {
		mails++
		return fmt.Sprintf("mail-%d", mails), nil
	}
	for range 2 {
		id, err := idempotency.Do(context.Background(), keys, "order-17", "ada@example.com", send)
		fmt.Println(id, err)
	}

	// Output:
	// mail-1 <nil>
	// mail-1 <nil>
}

// A batch in which each message is decided by itself: what failed is delivered again, what is done
// is not done again, and what is refused for good is not tried again.
func ExampleDo_batch() {
	keys := &idempotency.Keys{Store: memstore.New(), Scope: "invoices"}
	defer keys.Wait()
	away := true
	book := func(invoice string) (string, error) {
		fmt.Println("book", invoice)
		switch {
		case invoice == "b" && away:
			return "", errors.New("the ledger is away")
		case invoice == "c":
			return "", idempotency.Final(errors.New("the account is closed"))
		}
		return "booked", nil
	}
	deliver := func(batch ...string) (again []string) {
		for _, invoice := range batch {
			_, err := idempotency.Do(context.Background(), keys, invoice, nil, func(context.Context) (string, error) {
				return book(invoice)
			})
			var final *idempotency.FinalError
			if err != nil && !errors.As(err, &final) {
				again = append(again, invoice)
			}
		}
		return again
	}
	fmt.Println("again:", deliver("a", "b", "c"))
	away = false
	fmt.Println("again:", deliver("a", "b", "c")) // the queue repeats the whole batch

	// Output:
	// book a
	// book b
	// book c
	// again: [b]
	// book b
	// again: []
}

// A tool that an agent calls. When the agent repeats a call, for example after a timeout, the call
// has another ID: the key is made of the conversation's turn and the arguments. Two calls of one
// turn with equal arguments are one transfer. Tell the model so in the tool's description.
func ExampleContent_Key() {
	type call struct {
		ID, Turn  string
		Arguments json.RawMessage
	}
	keys := &idempotency.Keys{Store: memstore.New(), Scope: "transfer_money"}
	defer keys.Wait()
	transfers := 0
	transfer := func(c call) (string, error) {
		key, err := idempotency.Content{}.Key(c.Arguments)
		if err != nil {
			return "", err
		}
		return idempotency.Do(context.Background(), keys.In("transfer_money/"+c.Turn), key, c.Arguments,
			func(context.Context) (string, error) {
				transfers++
				return fmt.Sprintf("transfer-%d", transfers), nil
			})
	}
	for _, c := range []call{
		{"call_1", "turn-1", json.RawMessage(`{"to": "ada", "cents": 500}`)},
		{"call_2", "turn-1", json.RawMessage(`{"cents":500,"to":"ada"}`)}, // the same, once more
		{"call_3", "turn-2", json.RawMessage(`{"to": "ada", "cents": 500}`)},
	} {
		id, err := transfer(c)
		fmt.Println(c.ID, id, err)
	}

	// Output:
	// call_1 transfer-1 <nil>
	// call_2 transfer-1 <nil>
	// call_3 transfer-2 <nil>
}

// A guard against duplicates: within an hour, an order with the same content but another key is
// refused, and the answer names the first one. The guarded work runs only for the first key.
func ExampleContent_Key_guard() {
	guard := &idempotency.Keys{Store: memstore.New(), Scope: "ada", Policy: idempotency.Policy{TTL: time.Hour}}
	defer guard.Wait()
	place := func(key string, order map[string]any) {
		content, err := idempotency.Content{Members: []string{"sku", "count"}}.Key(order)
		if err != nil {
			fmt.Println(err)
			return
		}
		first, err := idempotency.Do(context.Background(), guard, content, nil, func(context.Context) (string, error) {
			fmt.Println("placed", key)
			return key, nil
		})
		if err == nil && first != key {
			fmt.Println("refused", key+": the same as", first)
		}
	}
	tee := map[string]any{"sku": "tee", "count": 1}
	place("key-1", tee)
	place("key-2", tee)
	place("key-3", map[string]any{"sku": "tee", "count": 2})

	// Output:
	// placed key-1
	// refused key-2: the same as key-1
	// placed key-3
}
