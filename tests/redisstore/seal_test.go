package redisstore_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/idempotency"
	"github.com/oncepay/oncepay/idempotency/redisstore"
	"github.com/oncepay/oncepay/internal/testenv"
)

var (
	current  = []byte("a secret of the service, that nobody knows")
	previous = []byte("the secret before, which still verifies")
)

const sealed = "idempotency:acct_1:key"

// keep stores an answer for a key.
func keep(t *testing.T, store *redisstore.Store, key string) {
	t.Helper()
	record := pending(key)
	existing, err := store.Acquire(t.Context(), record, time.Minute)
	require.NoError(t, err)
	require.Nil(t, existing)
	require.NoError(t, store.Extend(t.Context(), record, time.Minute))
	require.NoError(t, store.Complete(t.Context(), done(record), time.Hour))
}

func TestSecrets_ReadBackWhatTheySigned(t *testing.T) {
	t.Parallel()
	client := open(t, testenv.Redis(t))
	before, during, after := redisstore.New(client, redisstore.WithSecrets(previous)),
		redisstore.New(client, redisstore.WithSecrets(current, previous)), redisstore.New(client, redisstore.WithSecrets(current))
	keep(t, before, "key")
	found, err := during.Lookup(t.Context(), "acct_1", "key")
	require.NoError(t, err)
	require.Equal(t, `{"id":1}`, string(found.Response.Body))
	require.Equal(t, []string{"/x"}, found.Response.Header["Location"])
	_, err = after.Lookup(t.Context(), "acct_1", "key")
	require.ErrorIs(t, err, idempotency.ErrCorrupt, "the previous secret is no longer accepted")

	keep(t, during, "new")
	for _, store := range []*redisstore.Store{after, redisstore.New(client)} { // who has no secrets reads signed records, too
		_, err := store.Lookup(t.Context(), "acct_1", "new")
		require.NoError(t, err)
	}
}

func TestSecrets_RefuseAForgery(t *testing.T) {
	t.Parallel()
	forgeries := map[string]func(record string) string{
		"another status": func(r string) string {
			return strings.Replace(r, `"responseStatusCode":201`, `"responseStatusCode":200`, 1)
		},
		"another body": func(r string) string { return strings.Replace(r, `{"id":1}`, `{"id":2}`, 1) },
		"another request": func(r string) string {
			return strings.Replace(r, `"requestFingerprint":"`, `"requestFingerprint":"v1:00`, 1)
		},
		"an owner": func(r string) string { return strings.Replace(r, `"owner":"`, `"owner":"x`, 1) },
		"no signature": func(r string) string {
			signed, _, _ := strings.Cut(r, `,"mac":"`)
			return signed + "}\n{\"id\":1}"
		},
		"a short signature": func(r string) string {
			signed, mac, _ := strings.Cut(r, `,"mac":"`)
			return signed + `,"mac":"` + mac[1:]
		},
		"another signature": func(r string) string {
			signed, mac, _ := strings.Cut(r, `,"mac":"`)
			return signed + `,"mac":"` + strings.Repeat("A", 22) + mac[22:]
		},
		"a signature that is none": func(r string) string { return strings.Replace(r, `"mac":"`, `"mac":"!`, 1) },
		"a text":                   func(string) string { return "x" },
		"a line end":               func(string) string { return "\n" },
		"nothing":                  func(string) string { return "" },
	}
	for name, forge := range forgeries {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			client := open(t, testenv.Redis(t))
			store := redisstore.New(client, redisstore.WithSecrets(current))
			keep(t, store, "key")
			record := client.Get(t.Context(), sealed).Val()
			forged := forge(record)
			require.NotEqual(t, record, forged)
			require.NoError(t, client.Set(t.Context(), sealed, forged, redis.KeepTTL).Err())
			requireForged(t, store, "key")
		})
	}
}

// requireForged: the record is no answer, and whoever has an authority replaces it.
func requireForged(t *testing.T, store *redisstore.Store, key string) {
	t.Helper()
	_, err := store.Lookup(t.Context(), "acct_1", key)
	require.ErrorIs(t, err, idempotency.ErrCorrupt)
	retry := pending(key)
	_, err = store.Acquire(t.Context(), retry, time.Minute)
	require.ErrorIs(t, err, idempotency.ErrCorrupt)
	existing, err := store.Repair(t.Context(), retry, time.Minute)
	require.NoError(t, err)
	require.Nil(t, existing)
	require.NoError(t, store.Complete(t.Context(), done(retry), time.Minute))
	_, err = store.Lookup(t.Context(), "acct_1", key)
	require.NoError(t, err)
}

func TestSecrets_RefuseARecordOfAnotherKey(t *testing.T) {
	t.Parallel()
	for name, opts := range map[string][]redisstore.Option{
		"signed": {redisstore.WithSecrets(current)}, "of another generation": {redisstore.WithSecrets(current)}, "without secrets": nil,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			client := open(t, testenv.Redis(t))
			store := redisstore.New(client, opts...)
			keep(t, store, "cheap")
			target := "idempotency:acct_1:dear"
			if name == "of another generation" {
				target = "idempotency:2:acct_1:cheap"
				store = redisstore.New(client, append(opts, redisstore.WithGeneration(func() string { return "2" }))...)
			}
			require.NoError(t, client.Set(t.Context(), target, client.Get(t.Context(), "idempotency:acct_1:cheap").Val(), time.Minute).Err())
			requireForged(t, store, target[strings.LastIndex(target, ":")+1:])
		})
	}
}

func TestUnsigned_AreAcceptedWhileTheyAreExpected(t *testing.T) {
	t.Parallel()
	client := open(t, testenv.Redis(t))
	keep(t, redisstore.New(client), "key") // an instance that does not sign yet
	rollout := redisstore.New(client, redisstore.WithSecrets(current), redisstore.WithUnsigned())
	_, err := rollout.Lookup(t.Context(), "acct_1", "key")
	require.NoError(t, err)
	keep(t, rollout, "new")
	record := client.Get(t.Context(), "idempotency:acct_1:new").Val()
	require.NoError(t, client.Set(t.Context(), "idempotency:acct_1:new", strings.Replace(record, `"id":1`, `"id":2`, 1), 0).Err())
	requireForged(t, rollout, "new")
	requireForged(t, redisstore.New(client, redisstore.WithSecrets(current)), "key")
}

// TestKey_ChoosesNoSlot: a cluster takes the slot from the text between the first braces.
func TestKey_ChoosesNoSlot(t *testing.T) {
	t.Parallel()
	client := open(t, testenv.Redis(t))
	store := redisstore.New(client)
	tags := map[string]bool{}
	for n := range 10 {
		key := fmt.Sprintf("{mine}%d", n)
		keep(t, store, key)
		found, err := store.Lookup(t.Context(), "acct_1", key)
		require.NoError(t, err)
		require.Equal(t, key, found.Key)
	}
	for _, name := range client.Keys(t.Context(), "*").Val() {
		_, rest, _ := strings.Cut(name, "{")
		tag, _, _ := strings.Cut(rest, "}")
		tags[tag] = true
	}
	require.Len(t, tags, 10)
	require.NotContains(t, tags, "mine")
}

// BenchmarkSecrets compares steps with and without signatures, one after the other in each round.
func BenchmarkSecrets(b *testing.B) {
	client := open(b, testenv.Redis(b))
	for name, opts := range map[string][]redisstore.Option{"unsigned": nil, "signed": {redisstore.WithSecrets(current)}} {
		store := redisstore.New(client, append(opts, redisstore.WithPrefix(name+":"))...)
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			before := cpu(b)
			for range b.N {
				record := pending(string(idempotency.NewOwner()))
				_, err := store.Acquire(b.Context(), record, time.Minute)
				require.NoError(b, err)
				require.NoError(b, store.Complete(b.Context(), done(record), time.Minute))
				_, err = store.Lookup(b.Context(), "acct_1", record.Key)
				require.NoError(b, err)
			}
			b.ReportMetric(float64((cpu(b)-before).Nanoseconds())/float64(b.N)/3, "cpu-ns/step")
		})
	}
}
