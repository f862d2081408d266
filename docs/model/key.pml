// One-transaction operations, such as orders and top-ups: Redis decides quickly,
// PostgreSQL decides finally. Code: idempotency/serve.go, internal/postgres/claim.go.
//
// Three attempts use the key K: two of client 1, with request 1, and one of client
// 2, with request 1 or 2. Each starts at any time and may pause before any step.
//
// SWITCH AUTHORITY_IGNORED breaks once: the transaction executes although the key's row exists
// SWITCH LOOK_IS_BELIEVED breaks once: the key's row is written over if the first look did not find it
// SWITCH ANSWER_AFTER_COMMIT breaks once: the key's row is written in a second transaction
// SWITCH NO_TOMBSTONE breaks once: the row of an expired key is deleted
// SWITCH UNKNOWN_IS_REFUSED breaks final: a commit without a reply is answered with a final 4xx
// SWITCH REFUSAL_NOT_KEPT breaks final: a final 4xx writes no row
// SWITCH REDIS_COMPARES_NO_REQUEST breaks request: the middleware does not compare fingerprints
// SWITCH ROW_COMPARES_NO_REQUEST breaks request: the authority does not compare fingerprints
// SWITCH OWNER_NOT_CHECKED breaks holder: Redis completes or releases a record for any owner
// SWITCH FULL_TTL breaks agree: an answer from PostgreSQL is put back into Redis for the full TTL
// SWITCH OWN_RECORD_FOREIGN breaks waits: a repeated acquire does not recognise its own record
// SWITCH UNKNOWN_IS_KEPT breaks unknown: a 503 is kept in Redis like a final answer
// SWITCH LEASE_NEVER_ENDS breaks decided: a record in progress has no expiry
#include "common.h"

#define ONCE    "BROKEN once: at most one effect\n"
#define AGAIN   "BROKEN again: every 2xx seen is in PostgreSQL and is answered again\n"
#define FINAL   "BROKEN final: a final 4xx never turns out to have had an effect\n"
#define REQUEST "BROKEN request: the same key with another request never gets a 2xx\n"
#define UNKNOWN "BROKEN unknown: an unknown outcome is never kept as an answer\n"
#define AGREE   "BROKEN agree: nothing in Redis outlives or contradicts its row\n"
#define HOLDER  "BROKEN holder: a record in progress is changed by its owner only\n"
#define WAITS   "BROKEN waits: who is told to wait has somebody to wait for\n"

// How many faults there are, of any kind and before any step: a crash, a lost
// reply, a cut connection, Redis emptied. A failover of Redis that loses its last
// write is one of the latter two. Leases end at any time: every delay is a pause.
#ifdef LIVENESS
byte faults = 1;
#else
byte faults = 2;
#endif

#define TTL 2 // in ticks

mtype = { absent, pending, done, tombstone };
mtype = { nothing, created, refused, in_progress, reused, expired, unavailable };

typedef Record { mtype state, answer; byte named, owner, expires };
Record redis, row;
byte now;
bit in_stock, second_request, seen_created[3], seen_refused[3];
byte effect_of; // the request that had the effect

#define request (1 + (i > 2 && second_request))
#define client  (1 + (i > 2))

#ifdef REDIS_COMPARES_NO_REQUEST
#define other_in_redis false
#else
#define other_in_redis (redis.named != request)
#endif
#ifdef ROW_COMPARES_NO_REQUEST
#define other_in_row false
#else
#define other_in_row (row.named != request)
#endif

inline write(record, s, a, wanted, own, exp) {
	record.state = s; record.answer = a; record.named = wanted; record.owner = own; record.expires = exp
}

inline clear(record) { write(record, absent, nothing, 0, 0, 0) }

// These switches break AGREE as well, before the client sees anything.
#if defined(UNKNOWN_IS_REFUSED) || defined(REFUSAL_NOT_KEPT) || defined(ROW_COMPARES_NO_REQUEST)
#define agrees true
#else
#define agrees (row.state == done && row.named == redis.named && row.answer == redis.answer)
#endif
#define check_agreement() promise(AGREE, redis.state != done || agrees)

inline acquired() {
	write(redis, pending, nothing, request, i, 0); held = true;
	printf("replica %c acquires K in Redis for client %d\n", replica, client)
}

inline read_redis() {
	if
	:: other_in_redis && redis.state == done -> answer = reused
	:: other_in_redis && redis.state == pending -> answer = in_progress
#ifndef OWN_RECORD_FOREIGN
	:: !other_in_redis && redis.state == pending && redis.owner == i -> held = true
#endif
	:: else ->
		if
		:: redis.state == done -> answer = redis.answer
		:: redis.state == pending -> promise(WAITS, redis.owner != i); answer = in_progress
		fi;
		printf("replica %c finds K in Redis: %e\n", replica, answer)
	fi
}

inline execute() {
	if
	:: stock_seen ->
		printf("replica %c executes request %d and commits\n", replica, request);
		promise(ONCE, effect_of == 0); promise(FINAL, !seen_refused[request]);
		effect_of = request; answer = created
	:: else -> answer = refused; printf("replica %c refuses request %d and commits that\n", replica, request)
	fi;
	expires = now + TTL
}

inline keep() {
#ifdef REFUSAL_NOT_KEPT
	if :: answer == created -> write(row, done, answer, request, 0, expires) :: else fi
#else
	write(row, done, answer, request, 0, expires)
#endif
}

inline read_row() {
	if
	:: other_in_row -> answer = reused
	:: !other_in_row && row.state == tombstone -> answer = expired
	:: !other_in_row && row.state == done -> answer = row.answer; expires = row.expires
	fi;
	printf("replica %c finds the row of K in PostgreSQL: %e\n", replica, answer)
}

inline finish() {
#ifdef FULL_TTL
	expires = now + TTL;
#endif
	if
#ifndef OWNER_NOT_CHECKED
	:: redis.state != pending || redis.owner != i -> printf("replica %c has lost its lease\n", replica)
#endif
	:: else ->
		printf("replica %c's last command reaches Redis\n", replica);
		promise(HOLDER, redis.state != pending || redis.owner == i);
		if
		:: (answer == created || answer == refused) && expires > now ->
			printf("replica %c completes K in Redis\n", replica);
			write(redis, done, answer, request, i, expires); check_agreement()
#ifdef UNKNOWN_IS_KEPT
		:: answer == unavailable -> promise(UNKNOWN, false)
#endif
		:: else -> clear(redis); printf("replica %c releases K in Redis\n", replica)
		fi
	fi
}

inline hear() {
	printf("client %d gets the answer: %e\n", client, answer);
	if
	:: answer == created ->
		promise(REQUEST, effect_of == request); promise(AGAIN, row.state == absent || row.answer == created);
		seen_created[request] = true
	:: answer == refused ->
		promise(FINAL, effect_of != request); promise(AGAIN, !seen_created[request]);
		seen_refused[request] = true
	:: answer == reused -> promise(AGAIN, !seen_created[request])
	:: else
	fi
}

#define crash :: d_step { faults > 0 -> faults--; printf("replica %c crashes\n", replica) } goto ended

proctype attempt(byte i) {
	byte expires;
	mtype answer = nothing;
	bit held, stock_seen;
	printf("client %d sends request %d with key K to replica %c\n", client, request, replica);
	if
	:: d_step { redis.state == absent -> acquired() }
	:: d_step { redis.state == absent && faults > 0 -> faults--; acquired();
			printf("Redis's reply is lost, replica %c repeats the command\n", replica) }
		if
		:: d_step { redis.state == absent -> acquired() }
		:: d_step { redis.state != absent -> held = false; read_redis() }
		fi
	:: d_step { redis.state != absent -> read_redis() }
	:: d_step { faults > 0 -> faults--; printf("replica %c cannot reach Redis: PostgreSQL decides alone\n", replica) }
	fi;
	if
	:: answer != nothing -> goto answered
	:: answer == nothing
	fi;
	// The decision is made on what is read now. Nothing is locked.
	if
	crash
	:: d_step { true -> stock_seen = in_stock;
#ifndef AUTHORITY_IGNORED
			if :: row.state != absent -> read_row() :: else -> printf("replica %c finds no row of K\n", replica) fi
#endif
			}
	fi;
	if
	:: answer != nothing -> goto finishing
	:: answer == nothing
	fi;
	if
	crash
#if defined(AUTHORITY_IGNORED) || defined(LOOK_IS_BELIEVED)
	:: d_step { true -> execute(); keep() }
#else
	:: d_step { row.state != absent -> read_row() }
#ifdef ANSWER_AFTER_COMMIT
	:: d_step { row.state == absent -> execute() }
		if crash :: d_step { true -> keep() } fi
#else
	:: d_step { row.state == absent -> execute(); keep() }
#endif
	:: d_step { row.state == absent && faults > 0 -> faults--; execute(); keep();
#ifdef UNKNOWN_IS_REFUSED
			answer = refused;
#else
			answer = unavailable;
#endif
			printf("PostgreSQL's reply is lost: replica %c does not know the outcome\n", replica) }
#endif
	fi;
finishing:
	if
	:: d_step { held -> finish() }
	:: d_step { held && faults > 0 -> faults--; printf("replica %c's last command to Redis is lost\n", replica) }
	:: !held
	fi;
answered:
	if
	:: d_step { true -> hear() }
	:: printf("client %d waits no longer for replica %c\n", client, replica)
	fi;
ended:	skip
}

proctype world() {
end:	do
#ifndef LEASE_NEVER_ENDS
	:: d_step { redis.state == pending -> clear(redis); printf("the lease in Redis ends\n") }
#endif
	:: d_step { faults > 0 && redis.state != absent -> faults--; clear(redis); printf("Redis is emptied\n") }
	:: d_step { !in_stock -> in_stock = true; printf("the product is in stock\n") }
	:: d_step { now < TTL -> now++; printf("half of the TTL passes\n");
			if :: redis.state == done && redis.expires <= now -> clear(redis) :: else fi;
#ifdef NO_TOMBSTONE
			if :: row.state == done && row.expires <= now -> clear(row) :: else fi;
#else
			if :: row.state == done && row.expires <= now -> row.state = tombstone :: else fi;
#endif
			check_agreement() }
	od
}

init {
	atomic {
		clear(redis); clear(row);
		if :: second_request = 0 :: second_request = 1 fi;
		run world(); run attempt(1); run attempt(2);
#ifndef LIVENESS
		run attempt(3)
#endif
	}
}

ltl decided { <> [] (redis.state != pending) }
