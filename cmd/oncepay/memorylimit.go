package main

import "runtime/debug"

// memoryLimit makes the garbage collector work harder long before a replica has the 96 MiB that its
// pod requests: not all memory is the collector's.
const memoryLimit = 48 << 20

// limitMemory sets the limit, unless the runtime has read one from GOMEMLIMIT.
func limitMemory(getenv func(string) string) {
	if getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(memoryLimit)
	}
}
