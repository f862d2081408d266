package redisstore

import (
	"context"
	"fmt"
	"strconv"

	"github.com/redis/go-redis/v9"
)

// MemoryUse returns how full the server is: the part of its maxmemory that its data takes, 1 when
// it refuses writes. Of a cluster it is that of the fullest master. It is 0 if there is no
// maxmemory: then the system ends the server when memory runs out. The fields used_memory and
// maxmemory are those of INFO (https://redis.io/docs/latest/commands/info/), which the user must be
// allowed to call.
func MemoryUse(ctx context.Context, client redis.UniversalClient) (fullest float64, err error) {
	servers, err := masters(ctx, client)
	if err != nil {
		return 0, fmt.Errorf("ask redis for its memory: %w", translate(err))
	}
	for _, server := range servers {
		use, err := memoryUse(ctx, server)
		if err != nil {
			return 0, fmt.Errorf("ask redis for its memory: %w", translate(err))
		}
		fullest = max(fullest, use)
	}
	return fullest, nil
}

func memoryUse(ctx context.Context, server redis.UniversalClient) (float64, error) {
	info, err := server.Info(ctx, "memory").Result()
	if err != nil {
		return 0, err
	}
	used, _ := strconv.ParseFloat(field(info, "used_memory"), 64)
	limit, _ := strconv.ParseFloat(field(info, "maxmemory"), 64)
	if limit == 0 {
		return 0, nil
	}
	return used / limit, nil
}
