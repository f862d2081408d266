# The image of the service, and one of the tools: static binaries and nothing else, for an unprivileged user and a read-only
# root. Dockerfile.prebuilt makes the same ones from binaries that were built outside, which needs no other image.

FROM golang:1.26.8 AS build
WORKDIR /src
COPY go.mod go.sum ./
COPY idempotency/go.mod idempotency/go.sum idempotency/
COPY idempotency/redisstore/go.mod idempotency/redisstore/go.sum idempotency/redisstore/
COPY idempotency/authority/go.mod idempotency/authority/go.sum idempotency/authority/
COPY idempotency/pgstore/go.mod idempotency/pgstore/go.sum idempotency/pgstore/
RUN go mod download
COPY . .
RUN CGO_ENABLED=0 go build -trimpath -buildvcs=false -ldflags="-s -w" -o /out/ ./cmd/oncepay ./cmd/pspsim ./cmd/stack

# The provider simulator and the stack's fault proxy: for development. `--target tools` makes this image alone.
FROM scratch AS tools
USER 65532:65532
COPY --from=build /out/pspsim /out/stack /

# The service, and nothing else.
FROM scratch
USER 65532:65532
ENTRYPOINT ["/oncepay"]
CMD ["serve"]
COPY --from=build /out/oncepay /
