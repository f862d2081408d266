package main

import "runtime/debug"

// memoryLimit makes the garbage collector work harder before a replica grows past its 64 MiB.
const memoryLimit = 48 << 20

// limitMemory sets the limit, unless the runtime has read one from GOMEMLIMIT.
func limitMemory(getenv func(string) string) {
	if getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(memoryLimit)
	}
}
