package redisstore

import (
	_ "embed"
	"fmt"

	"github.com/redis/go-redis/v9"

	"github.com/oncepay/oncepay/idempotency"
)

//go:embed scripts/owner.lua
var owner string

//go:embed scripts/extend.lua
var extendSource string

//go:embed scripts/complete.lua
var completeSource string

//go:embed scripts/release.lua
var releaseSource string

// Each script begins with owner.lua, which reads the record. A script is called by its hash, and
// sent in full only to a server that does not know it.
var (
	extend   = newScript(extendSource)
	complete = newScript(completeSource)
	release  = newScript(releaseSource)
)

type script struct{ source, hash string }

func newScript(source string) script {
	s := redis.NewScript(owner + source)
	return script{owner + source, s.Hash()}
}

// errorOf returns the error that a script's reply stands for.
func errorOf(reply string) error {
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
