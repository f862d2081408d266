// Refusals that leave no answer, such as an unknown product: the client corrects
// what is wrong and uses the key again, but an older copy of the refused request
// must never act. Code: internal/httpapi/arrival.go, idempotency/authority/claim.go.
//
// Three requests use the key K, sent at the times 1, 2 and 3. nginx passes the
// second one on, so it has two copies with one time. Requests 1 and 2 differ, and
// the third one is like either of them.
//
// SWITCH NO_ROW breaks fenced: a refusal writes no row
// SWITCH TIME_NOT_COMPARED breaks fenced: any attempt claims a refused key
// SWITCH SAME_TIME_CLAIMS breaks fenced: an attempt of the same time claims a refused key
// SWITCH AGE_NOT_CHECKED breaks fenced: an attempt may be older than the refused rows that are kept
// SWITCH MISMATCH_IS_FINAL breaks fenced: another request gets 422 before the answer to the first one is kept
// SWITCH REFUSED_FOR_EVER breaks open: no attempt claims a refused key
#include "common.h"

#define FENCED "BROKEN fenced: once the client has seen a refusal, no older copy of the request acts\n"
#define OPEN   "BROKEN open: a later attempt may use a refused key\n"
#define ONCE   "BROKEN once: at most one effect\n"

byte faults = 1; // crashes

mtype = { absent, pending, refused_row, done };
mtype = { nothing, created, refused, in_progress, reused, unavailable };

mtype redis = absent, row = absent;
byte redis_request, redis_owner, row_request, row_time;
bit third_request, product, effect;
byte refused_at[3]; // newest attempt of the request whose refusal the client has seen
byte forgotten;     // refused rows up to this time may be purged

// The attempts 1 to 4 are: request 1, two copies of request 2, the third request.
#define time    (i - (i > 2))
#define request (1 + (i == 2 || i == 3 || (i == 4 && third_request)))

inline read_redis() {
	if
	:: redis_request != request ->
#ifdef MISMATCH_IS_FINAL
		answer = reused
#else
		answer = in_progress
#endif
	:: else -> answer = in_progress
	fi
}

inline execute() {
	if
	:: product ->
		printf("replica %c executes request %d and commits\n", replica, request);
		promise(ONCE, !effect); promise(FENCED, refused_at[request] < time);
		effect = true; row = done; row_request = request; answer = created
	:: else -> answer = refused; printf("replica %c refuses request %d\n", replica, request)
#ifndef NO_ROW
		;
		row = refused_row; row_request = request; row_time = time
#endif
	fi
}

#ifdef TIME_NOT_COMPARED
#define claims true
#elif defined(SAME_TIME_CLAIMS)
#define claims (row_time <= time)
#elif defined(REFUSED_FOR_EVER)
#define claims false
#else
#define claims (row_time < time)
#endif
#ifdef AGE_NOT_CHECKED
#define too_old false
#else
#define too_old (time <= forgotten)
#endif

inline transaction() {
	if
	:: too_old -> answer = unavailable; printf("replica %c turns the attempt away, it is too old\n", replica)
	:: !too_old && row == done && row_request == request -> answer = created
	:: !too_old && row == done && row_request != request -> answer = reused
	:: !too_old && row == refused_row && !claims ->
		printf("replica %c finds that the key was refused at time %d\n", replica, row_time);
		promise(OPEN, time <= row_time); answer = unavailable
	:: else -> execute()
	fi
}

#define crash :: d_step { faults > 0 -> faults--; printf("replica %c crashes\n", replica) } goto ended

proctype attempt(byte i) {
	mtype answer = nothing;
	printf("copy %d, request %d of time %d with key K, reaches replica %c\n", i, request, time, replica);
	if
	:: d_step { redis == absent -> redis = pending; redis_request = request; redis_owner = i;
			printf("replica %c acquires K in Redis\n", replica) }
	:: d_step { redis != absent -> read_redis(); printf("replica %c finds K in Redis: %e\n", replica, answer) } goto answered
	fi;
	if crash :: d_step { true -> transaction() } fi;
	if
	crash
	:: d_step { redis == pending && redis_owner == i -> redis = absent; redis_request = 0; redis_owner = 0 }
	:: redis != pending || redis_owner != i
	fi;
answered:
	if
	:: d_step { true -> printf("the client of copy %d gets the answer: %e\n", i, answer);
			if
			:: (answer == refused || answer == reused) && refused_at[request] < time -> refused_at[request] = time
			:: else
			fi }
	:: printf("the client of copy %d does not wait\n", i)
	fi;
ended:	skip
}

proctype world() {
end:	do
	:: d_step { redis == pending -> redis = absent; redis_request = 0; redis_owner = 0; printf("the lease in Redis ends\n") }
	:: d_step { !product -> product = true; printf("the product is created\n") }
	:: d_step { forgotten < 3 -> forgotten++; printf("attempts of time %d are too old now\n", forgotten);
			if
			:: row == refused_row && row_time <= forgotten -> row = absent; row_time = 0; row_request = 0;
				printf("the refused row is purged\n")
			:: else
			fi }
	od
}

init {
	atomic {
		if :: third_request = 0 :: third_request = 1 fi;
		run world(); run attempt(1); run attempt(2); run attempt(3); run attempt(4)
	}
}
