package redisstore

import (
	"time"

	"github.com/redis/go-redis/v9"
)

// Timeouts of [Options]. A step and its one repetition stay under the
// middleware's two seconds even when each phase takes all of its time.
const (
	// DialTimeout covers a TLS handshake within a region.
	DialTimeout = 500 * time.Millisecond
	// ReadTimeout is a hundred times a slow reply's time: beyond it the reply is
	// taken for lost.
	ReadTimeout = 250 * time.Millisecond
	// WriteTimeout ends writes into a connection whose peer vanished.
	WriteTimeout = 250 * time.Millisecond
	// PoolTimeout bounds the wait for a connection: when all of them are busy
	// for so long, the server doesn't keep up, and more waiting won't help.
	PoolTimeout = 250 * time.Millisecond
)

// Open makes a client from a URL, see [Options]. It doesn't connect yet.
func Open(url string) (redis.UniversalClient, error) {
	o, err := Options(url)
	if err != nil {
		return nil, err
	}
	return NewClient(o), nil
}

// NewClient is redis.NewUniversalClient, but for a client of a cluster that
// sends nothing twice by itself. It doesn't connect yet.
func NewClient(o *redis.UniversalOptions) redis.UniversalClient {
	if o.MasterName == "" && (o.IsClusterMode || len(o.Addrs) > 1) {
		return newClusterClient(o.Cluster())
	}
	return redis.NewUniversalClient(o)
}
