package redisstore

import (
	_ "embed"
	"fmt"

	"github.com/redis/go-redis/v9"

	"github.com/oncepay/oncepay/idempotency"
)

//go:embed scripts/record.lua
var record string

//go:embed scripts/extend.lua
var extendSource string

//go:embed scripts/complete.lua
var completeSource string

//go:embed scripts/release.lua
var releaseSource string

// Each script begins by reading the record. Scripts run by their hash and are
// sent in full only to a server that doesn't know them.
var (
	extend   = redis.NewScript(record + extendSource)
	complete = redis.NewScript(record + completeSource)
	release  = redis.NewScript(record + releaseSource)
)

// verdict reads a script's reply.
func verdict(reply string) error {
	switch reply {
	case "ok":
		return nil
	case "lost":
		return idempotency.ErrLost
	case "corrupt":
		return idempotency.ErrCorrupt
	}
	return fmt.Errorf("%w: script replied %q", idempotency.ErrUnavailable, reply)
}
