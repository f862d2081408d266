package redisstore

import (
	"time"

	"github.com/redis/go-redis/v9"
)

// Timeouts of [Options]. A step and its one repetition stay within the middleware's two seconds
// even if each phase uses all of its time.
const (
	// DialTimeout covers a TLS handshake within a region.
	DialTimeout = 500 * time.Millisecond
	// ReadTimeout is a hundred times what a slow reply takes: after it the reply counts as
	// lost.
	ReadTimeout = 250 * time.Millisecond
	// WriteTimeout ends writes into a connection whose peer vanished.
	WriteTimeout = 250 * time.Millisecond
	// PoolTimeout limits the wait for a connection. If all are busy for so long, the server is
	// overloaded, and waiting longer does not help.
	PoolTimeout = 250 * time.Millisecond
	// batchTimeout limits a batch whose client has longer timeouts: each of its callers has
	// its own.
	batchTimeout = 2 * time.Second
)

// Open returns a client for a URL, see [Options]. It does not connect yet.
func Open(url string) (redis.UniversalClient, error) {
	o, err := Options(url)
	if err != nil {
		return nil, err
	}
	return NewClient(o), nil
}

// NewClient is redis.NewUniversalClient, except that its cluster client sends no command twice
// by itself. It does not connect yet.
func NewClient(o *redis.UniversalOptions) redis.UniversalClient {
	if o.MasterName == "" && (o.IsClusterMode || len(o.Addrs) > 1) {
		return newClusterClient(o.Cluster())
	}
	return redis.NewUniversalClient(o)
}
