package app

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"log/slog"

	"github.com/redis/go-redis/v9"
	"go.opentelemetry.io/otel"
)

// NewLogger returns a logger that writes one JSON object a line. In production idempotency keys,
// which clients make up of anything, are logged as LogKey has them.
func (c Config) NewLogger(w io.Writer) *slog.Logger {
	return slog.New(slog.NewJSONHandler(w, &slog.HandlerOptions{Level: c.LogLevel, ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == "key" && a.Value.Kind() == slog.KindString {
			a.Value = slog.StringValue(c.LogKey(a.Value.String()))
		}
		return a
	}}))
}

// loggedKeyBytes of a hash tell millions of keys apart.
const loggedKeyBytes = 8

// LogKey returns what the log has in place of an idempotency key: in production the beginning of
// its HMAC-SHA256 with LogSecret, in hexadecimal, by which an operator finds it again.
func (c Config) LogKey(key string) string {
	switch {
	case c.Environment != Production:
		return key
	case c.LogSecret == "":
		return "not logged without LOG_SECRET"
	}
	hash := hmac.New(sha256.New, []byte(c.LogSecret))
	hash.Write([]byte(key))
	return hex.EncodeToString(hash.Sum(nil)[:loggedKeyBytes])
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
