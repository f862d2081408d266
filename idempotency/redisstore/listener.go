package redisstore

import (
	"context"
	"sync"

	"github.com/redis/go-redis/v9"

	"github.com/oncepay/oncepay/idempotency/internal/watch"
)

// listener receives changes through one subscription, which begins with the first watch and ends
// with Close. It survives an outage of Redis: go-redis connects and subscribes again.
type listener struct {
	watches watch.Registry

	mu           sync.Mutex
	subscription *redis.PubSub
	closed       bool
	listening    sync.WaitGroup
}

// channel is shared by all keys: a subscription per key would cost a round trip per waiter.
func (s *Store) channel() string { return s.prefix + "changes" }

// Watch implements [idempotency.Watcher].
func (s *Store) Watch(scope, key string) (changed <-chan struct{}, stop func()) {
	s.listen()
	return s.watches.Add(s.keyOf(scope, key))
}

// Close ends the subscription that [Store.Watch] began, if any. Everything else continues to
// work.
func (s *Store) Close() error {
	s.mu.Lock()
	s.closed = true
	subscription := s.subscription
	s.mu.Unlock()
	if subscription == nil {
		return nil
	}
	err := subscription.Close()
	s.listening.Wait()
	s.mu.Lock()
	s.subscription = nil
	s.mu.Unlock()
	return err
}

// listen subscribes in the background, so that a waiter is not delayed.
func (s *Store) listen() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.subscription != nil || s.closed {
		return
	}
	subscription := s.client.Subscribe(context.Background()) // to no channel: it does not connect yet
	s.subscription = subscription
	s.listening.Go(func() {
		_ = subscription.Subscribe(context.Background(), s.channel()) // repeated while receiving
		for message := range subscription.ChannelWithSubscriptions() {
			switch message := message.(type) {
			case *redis.Subscription: // also after each reconnection
				s.watches.Hear()
			case *redis.Message:
				s.watches.Wake(message.Payload)
			}
		}
	})
}
