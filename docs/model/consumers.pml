// Events: from the stream to their effect, once in each consumer group. Code:
// internal/outbox/consumer.go, trim.go, sql/queries/inbox.sql.
//
// One group with two consumers, and two events that are published already. The
// order of entries does not matter, so the stream is a count of each event's entries.
//
// SWITCH NO_INBOX breaks once: the effect does not depend on the inbox
// SWITCH CURSOR_NOT_COMPARED breaks once: events at or before the group's cursor are not ignored
// SWITCH INBOX_PURGED_BY_AGE breaks once: the inbox is purged by the age of its rows, not by when the cursor passed them
// SWITCH EFFECT_AFTER_INBOX breaks delivered: the inbox row and the effect are two transactions
// SWITCH NO_REDELIVERY breaks delivered: nothing looks for events that the stream has lost
// SWITCH OUTBOX_PURGED_EARLY breaks delivered: the outbox is purged before the group's cursor has passed
// SWITCH CURSOR_SKIPS breaks delivered: the cursor moves to the last event in the inbox, over gaps
// SWITCH TRIMMED_BY_LENGTH breaks trimmed: the stream is trimmed although the group has not handled it
#include "common.h"

#define ONCE    "BROKEN once: an event has its effect once in each group\n"
#define TRIMMED "BROKEN trimmed: nothing is trimmed that the group has not had\n"

byte faults = 2; // the stream is lost, a consumer crashes, a group reads the stream from its start again

#define EVENTS 2
byte entries[EVENTS + 1];     // not delivered yet
byte pending[EVENTS + 1];     // delivered, and not acknowledged
bit outbox[EVENTS + 1], inbox[EVENTS + 1];
byte effects[EVENTS + 1], cursor;
byte reads_before_cursor[EVENTS + 1];  // running statements that read a cursor before the event
byte reads_before_inbox[EVENTS + 1];   // of these, the ones that began before the inbox row was written

inline effect(e) {
	printf("event %d has its effect\n", e);
	promise(ONCE, effects[e] == 0); effects[e]++
}

#define crash :: d_step { faults > 0 -> faults--; printf("consumer %d crashes\n", i) } goto ended

#ifdef CURSOR_NOT_COMPARED
#define had(e) false
#else
#define had(e) (cursor >= e)
#endif

#define read(event) \
	:: d_step { entries[event] > 0 -> e = event; entries[e]--; pending[e]++; printf("consumer %d reads event %d\n", i, e) } \
	:: d_step { pending[event] > 0 && entries[event] == 0 -> e = event; printf("consumer %d takes event %d over\n", i, e) }

proctype consumer(byte i) {
	byte e;
	bit ignored, first;
end:	do
	:: if read(1) read(2) fi;
		if
		crash
		:: d_step { true -> ignored = had(e);
				if
				:: ignored
				:: else -> reads_before_cursor[e]++; if :: inbox[e] :: else -> reads_before_inbox[e]++ fi;
					printf("consumer %d's statement begins and reads the cursor\n", i)
				fi }
		fi;
		if
		:: ignored
		:: d_step { !ignored -> first = !inbox[e]; inbox[e] = true;
				reads_before_cursor[e]--; if :: reads_before_inbox[e] > 0 -> reads_before_inbox[e]-- :: else fi
#ifndef EFFECT_AFTER_INBOX
#ifdef NO_INBOX
				; effect(e) }
#else
				; if :: first -> effect(e) :: else fi }
#endif
#else
				}
			if crash :: d_step { true -> if :: first -> effect(e) :: else fi } fi
#endif
		fi;
		d_step { if :: pending[e] > 0 -> pending[e]-- :: else fi }
ended:	skip;
		d_step { e = 0; ignored = 0; first = 0 }
	od
}

#define stream_is_empty (entries[1] + entries[2] + pending[1] + pending[2] == 0)

#ifdef INBOX_PURGED_BY_AGE
#define unread(e) (reads_before_inbox[e] == 0)
#else
#define unread(e) (reads_before_cursor[e] == 0)
#endif

#define upkeep(e) \
	:: d_step { outbox[e] && cursor == e - 1 && inbox[e] -> cursor = e; printf("the group's cursor moves to %d\n", e) } \
	:: d_step { inbox[e] && cursor >= e && unread(e) -> inbox[e] = false; printf("the inbox row of event %d is purged\n", e) } \
	:: d_step { outbox[e] && may_purge(e) -> outbox[e] = false; printf("event %d is purged from the outbox\n", e) } \
	redeliver(e) trim(e) skip_to(e)

#ifdef OUTBOX_PURGED_EARLY
#define may_purge(e) true
#else
#define may_purge(e) (cursor >= e)
#endif
#ifdef NO_REDELIVERY
#define redeliver(e)
#else
#define redeliver(e) :: d_step { outbox[e] && cursor < e && !inbox[e] && stream_is_empty -> \
	entries[e]++; printf("event %d is published again, the group misses it\n", e) }
#endif
#ifdef TRIMMED_BY_LENGTH
#define trim(e) :: d_step { entries[e] > 0 -> printf("event %d is trimmed\n", e); promise(TRIMMED, cursor >= e || inbox[e]) }
#else
#define trim(e)
#endif
#ifdef CURSOR_SKIPS
#define skip_to(e) :: d_step { cursor < e && inbox[e] -> cursor = e; printf("the group's cursor moves to %d\n", e) }
#else
#define skip_to(e)
#endif

proctype world() {
end:	do
	upkeep(1)
	upkeep(2)
	:: d_step { faults > 0 && !stream_is_empty -> faults--; printf("Redis is emptied\n");
			entries[1] = 0; entries[2] = 0; pending[1] = 0; pending[2] = 0 }
	:: d_step { faults > 0 && entries[1] == 0 && entries[2] == 0 -> faults--; entries[1] = 1; entries[2] = 1;
			printf("the group is created anew and reads the stream from its start\n") }
	od
}

init {
	atomic {
		outbox[1] = true; outbox[2] = true; entries[1] = 1; entries[2] = 1;
		run world(); run consumer(1); run consumer(2)
	}
}

ltl delivered { <> [] (effects[1] == 1 && effects[2] == 1) }
