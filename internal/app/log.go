package app

import (
	"context"
	"fmt"
	"io"
	"log/slog"

	"github.com/redis/go-redis/v9"
	"go.opentelemetry.io/otel"
)

// NewLogger returns a logger that writes one JSON object a line.
func NewLogger(w io.Writer, level slog.Level) *slog.Logger {
	return slog.New(slog.NewJSONHandler(w, &slog.HandlerOptions{Level: level}))
}

// QuietRedis sends what the Redis client has to say to log, at level debug: during an outage it has
// a line for each dial, while the idempotency checks say all that matters. It changes the whole
// process, so only main calls it, before anything else runs.
func QuietRedis(log *slog.Logger) { redis.SetLogger(redisLog{log}) }

// QuietTracing sends what OpenTelemetry has to say to log: above all that the collector can't be
// reached. Like QuietRedis it is for the whole process.
func QuietTracing(log *slog.Logger) {
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { log.Warn("traces were not sent", "error", err) }))
}

type redisLog struct{ log *slog.Logger }

// Printf implements the client's logger.
func (l redisLog) Printf(ctx context.Context, format string, v ...any) {
	l.log.DebugContext(ctx, fmt.Sprintf(format, v...))
}
