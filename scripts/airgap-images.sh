#!/usr/bin/env bash
# Builds replacements for the official images of PostgreSQL, Redis and nginx from Debian packages, for
# machines with a Docker engine that cannot reach a registry. They support the settings that
# docker-compose.yml and deploy/kubernetes use, and no others; servers have the official images' user
# ID, 999. The stack uses them if there is no official image.
# By hand: POSTGRES_IMAGE=oncepay-airgap/postgres:17 …
#
#   scripts/airgap-images.sh            builds what is missing (about a minute; needs root and a Debian mirror)
#   scripts/airgap-images.sh --force    builds all of them again
#   scripts/airgap-images.sh --remove   removes them
#
# DEBIAN_MIRROR (default http://deb.debian.org/debian) names the mirror.
set -euo pipefail

suite=trixie
mirror=${DEBIAN_MIRROR:-http://deb.debian.org/debian}
base=oncepay-airgap/debian:$suite
images=(oncepay-airgap/postgres:17 oncepay-airgap/redis:8 oncepay-airgap/nginx:1.26)

say() { printf '%-28s %s\n' "$1" "$2"; }
have() { docker image inspect "$1" >/dev/null 2>&1; }
as_root() { if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi; }

# quietly runs a command, and shows what it printed only when it fails.
quietly() {
	if ! "$@" >"$work/log" 2>&1; then
		tail -n 40 "$work/log" >&2
		echo "failed: $*" >&2
		exit 1
	fi
}

build_base() {
	(cd "$(dirname "$0")/.." && go run ./cmd/task --programs airgap-images)
	say "$base" "debootstrap from $mirror …"
	quietly as_root env PATH="$PATH:/usr/sbin:/sbin" debootstrap --variant=minbase "$suite" "$work/root" "$mirror"
	as_root rm -rf "$work/root/var/cache/apt/archives" "$work/root/var/lib/apt/lists"
	as_root tar -C "$work/root" -c . | docker import - "$base" >/dev/null
	as_root rm -rf "$work/root"
}

# build NAME reads a Dockerfile from standard input. --network host, because a container's own network may have no DNS here.
build() {
	say "$1" "installing packages …"
	mkdir -p "$work/context"
	cat >"$work/context/Dockerfile"
	quietly docker build --network host --tag "$1" "$work/context"
}

build_postgres() {
	mkdir -p "$work/context"
	cat >"$work/context/entrypoint.sh" <<-'SCRIPT'
		#!/bin/sh
		# Like the official image: the first start makes a cluster with the user, password and database of the environment.
		set -eu
		if [ "$1" = postgres ] && [ ! -s "$PGDATA/PG_VERSION" ]; then
			printf '%s' "${POSTGRES_PASSWORD:?}" >/tmp/password
			initdb --username="${POSTGRES_USER:-postgres}" --pwfile=/tmp/password --auth-host=scram-sha-256 \
				--encoding=UTF8 --locale=C.UTF-8 --no-instructions
			rm /tmp/password
			echo 'host all all all scram-sha-256' >>"$PGDATA/pg_hba.conf"
			echo "CREATE DATABASE \"${POSTGRES_DB:-${POSTGRES_USER:-postgres}}\"" | postgres --single -j postgres
		fi
		exec "$@"
	SCRIPT
	chmod 755 "$work/context/entrypoint.sh"
	build "${images[0]}" <<-DOCKERFILE
		FROM $base
		RUN useradd --system --user-group --uid 999 --home-dir /var/lib/postgresql postgres && apt-get update && \
		    DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends postgresql-17 && \
		    apt-get clean && rm -rf /var/lib/apt/lists/* /var/lib/postgresql/17 /etc/postgresql && \
		    mkdir -p /var/lib/postgresql/data && chmod 700 /var/lib/postgresql/data && \
		    chown -R postgres:postgres /var/lib/postgresql && chmod 1777 /run/postgresql
		ENV PATH=/usr/lib/postgresql/17/bin:/usr/local/bin:/usr/bin:/bin PGDATA=/var/lib/postgresql/data
		COPY entrypoint.sh /usr/local/bin/docker-entrypoint.sh
		USER postgres
		VOLUME /var/lib/postgresql/data
		STOPSIGNAL SIGINT
		ENTRYPOINT ["docker-entrypoint.sh"]
		CMD ["postgres", "-c", "listen_addresses=*"]
	DOCKERFILE
}

build_redis() {
	build "${images[1]}" <<-DOCKERFILE
		FROM $base
		RUN useradd --system --user-group --uid 999 redis && apt-get update && \
		    apt-get install -y --no-install-recommends redis-server && \
		    apt-get clean && rm -rf /var/lib/apt/lists/* && mkdir /data && chown redis:redis /data
		USER redis
		WORKDIR /data
		CMD ["redis-server", "--protected-mode", "no"]
	DOCKERFILE
}

build_nginx() {
	build "${images[2]}" <<-DOCKERFILE
		FROM $base
		RUN apt-get update && apt-get install -y --no-install-recommends nginx && \
		    apt-get clean && rm -rf /var/lib/apt/lists/*
		STOPSIGNAL SIGQUIT
		CMD ["nginx", "-g", "daemon off;"]
	DOCKERFILE
}

docker version >/dev/null 2>&1 || { echo "no Docker engine answers" >&2; exit 1; }
case ${1-} in
--force | --remove) docker image rm --force "${images[@]}" "$base" >/dev/null 2>&1 || true ;;
'') ;;
*) echo "usage: $0 [--force|--remove]" >&2; exit 2 ;;
esac
[ "${1-}" = --remove ] && exit

work=$(mktemp -d)
trap 'as_root rm -rf "$work"' EXIT
started=$SECONDS
builders=(build_postgres build_redis build_nginx)
for i in "${!images[@]}"; do
	if have "${images[$i]}"; then
		say "${images[$i]}" "is there"
		continue
	fi
	have "$base" || build_base
	"${builders[$i]}"
	rm -rf "$work/context"
	say "${images[$i]}" "built, $(docker image inspect --format '{{.Size}}' "${images[$i]}" | awk '{printf "%.0f MB", $1/1e6}')"
done
say "done" "in $((SECONDS - started)) s"
