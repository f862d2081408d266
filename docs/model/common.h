// promise fails the check unless the condition holds, and ends the story with the sentence.
#define promise(sentence, holds) if :: (holds) :: else -> printf(sentence); assert(false) fi

// Attempts alternate between the replicas A and B.
#define replica ('A' + (i + 1) % 2)

// For liveness: time goes on even if nothing else can happen, so that "never" is a cycle.
#ifdef LIVENESS
bit ticks;
active proctype clock() { do :: d_step { ticks = 1; ticks = 0 } od }
#endif
