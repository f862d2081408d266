package redisstore

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/oncepay/oncepay/idempotency"
)

// BenchmarkSeal is what a signature costs without Redis: writing and reading a record of 800 bytes.
func BenchmarkSeal(b *testing.B) {
	client := redis.NewClient(&redis.Options{})
	defer func() { _ = client.Close() }()
	record := idempotency.Record{Scope: "01a20b6b-a004-7471-8b9e-edf3da6f180d", Key: "9f6fe5b8-9a4c-4bd3-8f3c-1d2f0a4f8a11",
		Status: idempotency.StatusCompleted, Owner: idempotency.NewOwner(), CreatedAt: time.Now(),
		Response: idempotency.Response{StatusCode: 201, Body: make([]byte, 500)}}
	for name, store := range map[string]*Store{"unsigned": New(client), "signed": New(client, WithSecrets([]byte("a secret of 24 bytes or more")))} {
		stored, err := store.encode(record, time.Hour)
		if err != nil {
			b.Fatal(err)
		}
		b.Run("write-"+name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				_, _ = store.encode(record, time.Hour)
			}
			b.ReportMetric(float64(len(stored)), "bytes")
		})
		b.Run("read-"+name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := store.decode(record.Scope, record.Key, string(stored)); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
