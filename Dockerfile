# The image of all our programs: static binaries and nothing else, for an unprivileged user and a read-only root.

FROM scratch AS base
USER 65532:65532
ENTRYPOINT ["/oncepay"]
CMD ["serve"]

# prebuilt takes binaries that were built outside, so that it needs no other image; `stack up` does that. By hand:
#   CGO_ENABLED=0 go build -trimpath -ldflags='-s -w' -o bin/static/ ./cmd/oncepay ./cmd/pspsim ./cmd/stack
#   docker build --target prebuilt -f Dockerfile -t oncepay:local bin/static
FROM base AS prebuilt
COPY oncepay pspsim stack /

# The default builds them itself.
FROM golang:1.26 AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
RUN CGO_ENABLED=0 go build -trimpath -buildvcs=false -ldflags="-s -w" -o /out/ ./cmd/oncepay ./cmd/pspsim ./cmd/stack

FROM base
COPY --from=build /out/ /
