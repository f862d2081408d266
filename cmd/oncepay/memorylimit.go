package main

import "runtime/debug"

const (
	// memoryLimit makes the garbage collector work harder long before a replica has the 96 MiB that
	// its pod requests: not all memory is the collector's.
	memoryLimit = 48 << 20

	// gcPercent lets the heap grow to five times what is live before it is collected, since the
	// limit bounds it. Compared with the runtime's default of 100, an order costs 4 % less CPU of a
	// replica, which takes 8 MiB more memory.
	gcPercent = 400
)

// limitMemory sets the two, unless the runtime has read them from GOMEMLIMIT and GOGC.
func limitMemory(getenv func(string) string) {
	if getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(memoryLimit)
	}
	if getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
}
