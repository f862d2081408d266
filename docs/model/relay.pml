// The outbox: from the commit of an event to the stream. Positions are drawn in
// order, and committed in any order. Code: internal/outbox/relay.go,
// internal/postgres/uncommitted.go.
//
// Three transactions write one event each. Two relays stand ready; a lease ends at
// any time, since every delay is a pause.
//
// SWITCH NOT_WAITED breaks complete: the relay does not wait for open transactions
// SWITCH POSITION_BEFORE_LOCK breaks complete: a transaction draws its position before it locks the outbox
// SWITCH CURSOR_FIRST breaks complete: the relay moves the cursor before it publishes
// SWITCH CURSOR_NOT_FENCED breaks forward: moving the cursor compares neither who holds the lease nor where the cursor is
#include "common.h"

#define COMPLETE "BROKEN complete: the cursor passes no event that is not published\n"
#define ORDER    "BROKEN order: events are first published in the order of their positions\n"
#define FORWARD  "BROKEN forward: the cursor only moves forward\n"

#define EVENTS 3
byte faults = 1; // a relay crashes, or a transaction does not commit

byte drawn;               // the last position
bit locked[EVENTS + 1];   // by transaction: it holds a lock on the outbox
bit committed[EVENTS + 1], published[EVENTS + 1]; // by position
byte cursor, leader;      // leader: the relay that holds the lease, or 0

inline check_cursor() {
	byte p;
	for (p : 1 .. cursor) { promise(COMPLETE, !committed[p] || published[p]) }
	p = 0
}

proctype transaction(byte t) {
	byte position;
#ifdef POSITION_BEFORE_LOCK
	d_step { drawn++; position = drawn; printf("transaction %d draws position %d\n", t, position) }
	d_step { locked[t] = true; printf("transaction %d locks the outbox\n", t) }
#else
	d_step { locked[t] = true; printf("transaction %d locks the outbox\n", t) }
	d_step { drawn++; position = drawn; printf("transaction %d draws position %d\n", t, position) }
#endif
	if
	:: d_step { true -> committed[position] = true; locked[t] = false;
			printf("transaction %d commits the event at position %d\n", t, position);
			promise(COMPLETE, cursor < position) }
	:: d_step { faults > 0 -> faults--; locked[t] = false; printf("transaction %d is rolled back\n", t) }
	fi
}

#define must_wait(t) (waits[t] && locked[t])

proctype relay(byte r) {
	byte before, last, next;
	bit waits[EVENTS + 1];
end:	do
	:: d_step { (leader == 0 || leader == r) && cursor < drawn ->
			leader = r; before = cursor; last = drawn;
			waits[1] = locked[1]; waits[2] = locked[2]; waits[3] = locked[3];
			printf("relay %d leads and reads from %d to %d\n", r, before, last) }
#ifndef NOT_WAITED
		!must_wait(1) && !must_wait(2) && !must_wait(3);
#endif
		d_step { waits[1] = 0; waits[2] = 0; waits[3] = 0; next = before + 1
#ifdef CURSOR_FIRST
			; cursor = last; before = last
#endif
		}
		// What is read now does not change: every position up to last is decided.
		do
		:: d_step { next <= last ->
				if
				:: committed[next] ->
					promise(ORDER, published[next] || next == 1 || !committed[next - 1] || published[next - 1]);
					published[next] = true; printf("relay %d publishes event %d\n", r, next)
				:: else
				fi;
				next++ }
		:: next > last -> break
		:: d_step { faults > 0 -> faults--; printf("relay %d crashes\n", r)
#ifdef CURSOR_FIRST
				; check_cursor()
#endif
				} goto again
		od;
		if
#ifdef CURSOR_NOT_FENCED
		:: d_step { true -> printf("relay %d moves the cursor to %d\n", r, last); promise(FORWARD, cursor <= last);
#else
		:: d_step { leader == r && cursor == before -> printf("relay %d moves the cursor to %d\n", r, last); promise(FORWARD, cursor <= last);
#endif
				cursor = last; check_cursor() }
#ifndef CURSOR_NOT_FENCED
		:: d_step { leader != r || cursor != before -> printf("relay %d has lost its lease\n", r) }
#endif
		fi;
again:	skip;
		d_step { before = 0; last = 0; next = 0; waits[1] = 0; waits[2] = 0; waits[3] = 0 }
	od
}

proctype world() {
end:	do
	:: d_step { leader != 0 -> leader = 0; printf("the lease of the relay ends\n") }
	od
}

init { atomic { run transaction(1); run transaction(2); run transaction(3); run relay(1); run relay(2); run world() } }
