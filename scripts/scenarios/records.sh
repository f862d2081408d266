# shellcheck shell=bash
# shellcheck disable=SC2154 # work, dim and plain are lib.sh's
# The records of keys in the store that IDEMPOTENCY_STORE names: list, show and delete them. Part of
# lib.sh.

# records KEY: the names of a key's records, one per account; * stands for
# anything.
records() { "records_in_$IDEMPOTENCY_STORE" "$1"; }

# count_records KEY: how many, but not 0 when the store can't be asked.
count_records() {
  local names
  if names=$(records "$1"); then grep -c . <<<"$names" || true; else echo "unknown"; fi
}

# record NAME KEY: shows a key's record, of the only account that has one, and
# keeps its metadata, one line of JSON, as NAME.record and the bytes of the
# answer's body as NAME.kept.
record() {
  rm -f "$work/$1".*
  "record_in_$IDEMPOTENCY_STORE" "$1" "$(records "$2")"
}

# milliseconds_left KEY: until the store drops the record.
milliseconds_left() { "milliseconds_left_in_$IDEMPOTENCY_STORE" "$(records "$1")"; }

# lose_records: deletes all of them.
lose_records() { "lose_records_in_$IDEMPOTENCY_STORE"; }

# --- Redis -------------------------------------------------------------------

records_in_redis() { redis KEYS "idempotency:*:$1"; }

record_in_redis() {
  redis GET "$2" >"$work/$1.raw"
  head -n 1 "$work/$1.raw" >"$work/$1.record"
  tail -n +2 "$work/$1.raw" >"$work/$1.kept"
  printf '%s  $ redis-cli -h %s -p %s get %s%s\n' "$dim" "${REDIS_ADDR%:*}" "${REDIS_ADDR##*:}" "$(quote "$2")" "$plain"
  sed 's/^/  /' "$work/$1.raw"
}

milliseconds_left_in_redis() { redis PTTL "$1"; }

lose_records_in_redis() { stack 'flush redis'; }

# redis COMMAND [ARGUMENT…]: sends one command over the protocol, so that redis-cli is not needed.
# Prints the answer, one element per line.
redis() (
  LC_ALL=C # lengths are bytes
  exec 3<>"/dev/tcp/${REDIS_ADDR%:*}/${REDIS_ADDR##*:}"
  {
    printf '*%d\r\n' $#
    for word; do printf '$%d\r\n%s\r\n' "${#word}" "$word"; done
  } >&3
  redis_answer <&3
)

redis_answer() {
  local head size line
  IFS= read -r -t 5 head || return 1 # also if the connection was accepted by a proxy, and closed
  head=${head%$'\r'}
  case $head in
    '*'*) for ((size = ${head#?}; size > 0; size--)); do redis_answer && echo; done ;;
    '$-1') ;;
    '$'*)
      size=${head#?}
      while IFS= read -r -t 5 line; do
        if [ "${#line}" -ge "$size" ]; then # the rest of the line is the final \r
          printf '%s' "${line:0:size}"
          return
        fi
        printf '%s\n' "$line"
        size=$((size - ${#line} - 1))
      done
      return 1
      ;;
    -*) printf '%s\n' "$head" >&2 && return 1 ;;
    *) printf '%s' "${head#?}" ;;
  esac
}

# --- PostgreSQL --------------------------------------------------------------

# An expired record counts as absent. It stays until it is deleted in the background.
# The keys of the scenarios have no characters that are special in LIKE or in a literal.
records_in_postgres() {
  sql "SELECT scope || ':' || key FROM idempotency_records WHERE key LIKE '${1//\*/%}' AND expires_at > clock_timestamp()"
}

record_in_postgres() {
  local of
  of=$(row_of "$2")
  sql "SELECT json_build_object('key', key, 'status', status, 'requestFingerprint', encode(fingerprint, 'hex'),
    'responseStatusCode', response_status, 'expiresAt', to_char(expires_at AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS\"Z\"')) $of" |
    tr -d '\n' >"$work/$1.record"
  sql "SELECT encode(response_body, 'base64') $of" | base64 -d >"$work/$1.kept"
  printf '%s  $ psql %s -c %s%s\n' "$dim" "$DATABASE_URL" "$(quote "SELECT * $of")" "$plain"
  { cat "$work/$1.record" && echo && cat "$work/$1.kept"; } | sed 's/^/  /'
}

milliseconds_left_in_postgres() {
  sql "SELECT floor(extract(epoch FROM expires_at - clock_timestamp()) * 1000) $(row_of "$1")"
}

lose_records_in_postgres() {
  printf '%s  $ psql %s -c %s%s\n' "$dim" "$DATABASE_URL" "'DELETE FROM idempotency_records'" "$plain"
  sql "DELETE FROM idempotency_records"
}

# row_of SCOPE:KEY: the rest of a query for one record.
row_of() { echo "FROM idempotency_records WHERE scope = '${1%%:*}' AND key = '${1#*:}'"; }

# sql QUERY: its values, one row a line. Debian keeps a psql beside the server
# even where there is none on the PATH.
sql() {
  local psql
  psql=$(command -v psql || find /usr/lib/postgresql -name psql 2>/dev/null | sort -V | tail -n 1)
  "${psql:-psql}" -X -q -A -t -v ON_ERROR_STOP=1 -d "$DATABASE_URL" -c "$1"
}
