// Card payments in three phases: write the attempt down, ask the provider, settle.
// Code: internal/postgres/phases.go, internal/checkout/service.go, reconciler.go.
//
// Two clients send the same payment with the key K.
// Redis is left out, so that all attempts may run side by side. A reconciler and
// the provider's own events settle as well.
//
// SWITCH KEY_PER_ATTEMPT breaks once: each attempt has a provider key of its own
// SWITCH NOT_LOOKED_UP breaks once: a request is sent again without a look-up after the provider has forgotten its key
// SWITCH STATUS_NOT_CHECKED breaks ledger: a settlement does not check that the payment is processing
// SWITCH EVENT_SETTLES_ALWAYS breaks ledger: a provider event does not check that the payment is processing
// SWITCH ATTEMPT_NOT_CHECKED breaks final: a settlement does not check that its attempt is the newest
// SWITCH UNKNOWN_IS_DECLINED breaks final: no reply from the provider counts as declined
// SWITCH LOOKED_UP_EARLY breaks final: no charge counts as declined while a request may still arrive
// SWITCH REJECTION_IS_FINAL breaks final: any rejection that the provider does not keep is final
// SWITCH KEY_IN_PROGRESS_PURGED breaks settled: the row of a key in progress is purged
// SWITCH NO_RECONCILER breaks settled: only clients and provider events settle
#include "common.h"

#define ONCE   "BROKEN once: at most one charge\n"
#define LEDGER "BROKEN ledger: a payment is settled once\n"
#define FINAL  "BROKEN final: a declined payment is never charged\n"
#define AGAIN  "BROKEN again: every 2xx seen is in PostgreSQL\n"

// Faults: a crash, a reply lost, a request that arrives late, a rejection that the
// provider does not keep under its key (400).
#ifdef LIVENESS
byte faults = 1;
#else
byte faults = 3;
#endif

mtype = { absent, in_progress, processing, approved, declined, rejected, unknown };

mtype row = absent, payment = absent, charge = absent;
byte newest;         // number of the newest attempt
byte charges, entries, events;
bit approves;        // what the provider decides about the card
bit under_way;       // a request of which nobody waits for the reply
byte asking;         // attempts between their look-up and their request
// The payment's age, in the steps that decide: past an hour it is looked up before it is sent, and
// the provider may forget its key; past 23 hours it is not sent; past 24 hours nothing is under way.
bit aged, old, over, forgotten;

// The provider gets a request. It keeps its decision under the key.
inline provider() {
#ifdef KEY_PER_ATTEMPT
	if
	:: true ->
#else
	if
	:: charge != absent && !forgotten -> printf("the provider knows the request: %e\n", charge)
	:: else ->
#endif
		if
		:: approves -> printf("the provider charges the card\n"); promise(ONCE, charges == 0); promise(FINAL, payment != declined); charges++; charge = approved
		:: else -> charge = declined; printf("the provider declines\n")
		fi
	fi
}

inline settle_with(result) {
	printf("the payment is settled: %e\n", result);
	payment = result; row = result; entries++;
	promise(LEDGER, entries == 1);
	promise(FINAL, result != declined || charges == 0)
}

#ifdef STATUS_NOT_CHECKED
#define is_processing true
#else
#define is_processing (payment == processing)
#endif
#ifdef ATTEMPT_NOT_CHECKED
#define is_newest true
#else
#define is_newest (newest == number)
#endif
#ifdef UNKNOWN_IS_DECLINED
#define no_reply declined
#else
#define no_reply unknown
#endif
#ifdef REJECTION_IS_FINAL
#define rejection_is_final true
#else
#define rejection_is_final (number == 1)
#endif
#ifdef NOT_LOOKED_UP
#define looks_up old
#else
#define looks_up aged
#endif
#ifdef LOOKED_UP_EARLY
#define absent_is_final old
#else
#define absent_is_final over
#endif

// Phase two. A rejection that the provider does not keep is final for the first
// attempt only: a request of an earlier one may still arrive.
#define send(who, may, begin) \
	:: d_step { may -> begin; printf("%c asks the provider, attempt %d\n", who, number); provider(); result = charge } \
	:: d_step { may && faults > 0 -> begin; faults--; printf("%c asks the provider, attempt %d, and the reply is lost\n", who, number); \
		provider(); result = no_reply } \
	:: d_step { may && faults > 0 && !under_way -> begin; faults--; under_way = true; \
		printf("%c asks the provider, attempt %d, and the request is delayed\n", who, number); result = no_reply } \
	:: d_step { may && faults > 0 && charge == absent -> begin; faults--; \
		printf("the provider rejects attempt %d of %c and keeps nothing\n", number, who); \
		if :: rejection_is_final -> result = declined :: else -> result = unknown fi }

#define ask(who) \
	if \
	send(who, !looks_up, skip) \
	:: d_step { looks_up -> result = charge; printf("%c looks the charge up: %e\n", who, result); \
			if \
			:: result == absent && absent_is_final -> result = declined \
			:: result == absent && !absent_is_final -> result = unknown; if :: old :: else -> asking++ fi \
			:: else \
			fi } \
		if \
		:: result != unknown || old \
		send(who, result == unknown && !old, asking--) \
		fi \
	fi

// Phase three.
#define settle \
	d_step { \
		if \
		:: result != unknown && is_processing && is_newest -> settle_with(result) \
		:: else \
		fi; \
		result = unknown \
	}

#define crash :: d_step { faults > 0 -> faults--; printf("replica %c crashes\n", replica) } goto ended

proctype attempt(byte i) {
	byte number;
	mtype result = unknown;
	d_step {
		printf("client %d sends the payment with key K to replica %c\n", i, replica);
		if
		:: row == absent && payment == absent -> row = in_progress; payment = processing; newest = 1; number = 1
		:: row == in_progress -> newest++; number = newest
		:: else
		fi
	}
	if
	:: number > 0 ->
		if crash :: skip fi;
		ask(replica);
		if crash :: settle fi
	:: number == 0
	fi;
	d_step { // the answer is that of the row; a row in progress is a 503
		printf("client %d gets the answer of the key's row: %e\n", i, row);
		promise(AGAIN, row != approved || (payment == approved && charges == 1))
	}
ended:	skip
}

// An attempt that would only learn that nothing is decided is left out.
#define may_learn (!old || charge != absent || absent_is_final)

proctype reconciler() {
	byte number;
	mtype result = unknown;
end:	do
	:: d_step { payment == processing && row == in_progress && may_learn -> newest++; number = newest;
			printf("the reconciler takes attempt %d\n", number) }
		ask('R');
		settle
	od
}

proctype world() {
end:	do
	:: d_step { under_way -> under_way = false; printf("the delayed request arrives\n"); provider() }
	:: d_step { !aged && payment == processing -> aged = true; printf("the payment is an hour old\n") }
	:: d_step { aged && !old && payment == processing && asking == 0 -> old = true; printf("the payment is 23 hours old\n") }
	:: d_step { old && !over && payment == processing && !under_way && asking == 0 -> over = true; printf("the payment is 24 hours old\n") }
	:: d_step { aged && !under_way && asking == 0 && charge != absent && !forgotten -> forgotten = true; printf("the provider forgets its key\n") }
	:: d_step { charge != absent && events < 2 -> events++; printf("the provider's event arrives: %e\n", charge);
#ifdef EVENT_SETTLES_ALWAYS
			settle_with(charge) }
#else
			if :: payment == processing && row == in_progress -> settle_with(charge) :: else fi }
#endif
#ifdef KEY_IN_PROGRESS_PURGED
	:: d_step { row == in_progress -> row = absent; printf("the row of K is purged\n") }
#endif
	od
}

init {
	atomic {
		if :: approves = true :: approves = false fi;
		run world(); run attempt(1); run attempt(2);
#ifndef NO_RECONCILER
		run reconciler()
#endif
	}
}

ltl settled { <> [] (payment != processing) }
