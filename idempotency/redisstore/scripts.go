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

//go:embed scripts/replace.lua
var replaceSource string

// The scripts of an owner's record begin with owner.lua, which reads it. A script is called by its
// hash, and sent in full only to a server that does not know it.
var (
	extend   = newScript(owner + extendSource)
	complete = newScript(owner + completeSource)
	release  = newScript(owner + releaseSource)
	replace  = newScript(replaceSource)
)

type script struct{ source, hash string }

func newScript(source string) script {
	return script{source, redis.NewScript(source).Hash()}
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
