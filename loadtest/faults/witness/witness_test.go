package witness

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/internal/localserver"
)

const key = "idempotency:account:key"

// story is a log that a test makes up.
type story struct {
	*Witness
	at time.Duration
}

func newStory() *story { return &story{newWitness(), time.Hour} }

// after lets time pass in which Redis is asked for something else.
func (s *story) after(d time.Duration) *story {
	for end := s.at + d; s.at < end; {
		s.at = min(s.at+stall, end)
		s.see(command{at: s.at, args: []string{"ping"}})
	}
	return s
}

func value(owner, status string) string {
	return fmt.Sprintf(`{"owner":%q,"status":%q}`, owner, status)
}

func (s *story) acquire(owner string) *story {
	s.see(command{at: s.at, args: []string{"set", key, value(owner, "InProgress"), "px", "3000", "nx", "get"}})
	return s
}

// script is what one of ours does, if it does anything.
func (s *story) script(owner string, does ...string) *story {
	s.see(command{at: s.at, args: []string{"evalsha", "sha", "1", key, owner, "data"}})
	if len(does) > 0 {
		s.see(command{at: s.at, script: true, args: does})
	}
	return s
}

func (s *story) extend(owner string) *story {
	return s.script(owner, "set", key, value(owner, "InProgress"), "px", "3000")
}

func (s *story) complete(owner string) *story {
	return s.script(owner, "set", key, value(owner, "Completed"), "px", "86400000")
}

func (s *story) release(owner string) *story { return s.script(owner, "del", key) }

func (s *story) requireForeignWrite(t *testing.T, detail string) {
	t.Helper()
	found := s.Found().Foreign
	require.Len(t, found, 1)
	require.Equal(t, detail, found[0].Detail)
	require.Equal(t, key, found[0].Record)
}

func TestWitness_AllowsOwners(t *testing.T) {
	t.Parallel()
	s := newStory().acquire("a").after(2 * time.Second).extend("a").after(2 * time.Second).release("a").
		acquire("b").acquire("c").after(time.Second).complete("b").
		after(time.Minute).acquire("c").script("c")
	s.after(time.Second).see(command{at: s.at, args: []string{"flushall"}})
	s.acquire("d").complete("d")
	seen := s.Found()
	require.Len(t, seen.Releases, 1)
	require.Equal(t, key, seen.Releases[0].Record)
	require.Empty(t, seen.Foreign)
	require.Empty(t, seen.Losses)
}

func TestWitness_FindsForeignWrites(t *testing.T) {
	t.Parallel()
	newStory().acquire("a").after(4*time.Second).acquire("b").complete("a").requireForeignWrite(t, "a writes a record of b")
	newStory().acquire("a").after(4*time.Second).acquire("b").release("a").requireForeignWrite(t, "a removes a record of b")
	newStory().acquire("a").after(4*time.Second).acquire("b").extend("a").requireForeignWrite(t, "a writes a record of b")
	newStory().acquire("a").after(4*time.Second).complete("a").requireForeignWrite(t, "a writes a record that has expired")
	newStory().acquire("a").complete("a").extend("a").requireForeignWrite(t, "a writes a record that it had finished")
	newStory().acquire("a").release("a").complete("a").requireForeignWrite(t, "a writes a record that does not exist")
	newStory().acquire("a").complete("a").release("b").requireForeignWrite(t, "b removes a record of a")

	s := newStory().acquire("a")
	s.see(command{at: s.at, args: []string{"set", key, value("b", "InProgress"), "px", "3000"}})
	s.requireForeignWrite(t, "b writes a record of a")
}

func TestWitness_FindsLostLeases(t *testing.T) {
	t.Parallel()
	for name, s := range map[string]*story{
		"no takeover":      newStory().acquire("a").after(4 * time.Second).script("a"),
		"a takeover":       newStory().acquire("a").after(4 * time.Second).acquire("b").after(time.Second).script("a").script("a"),
		"and has finished": newStory().acquire("a").after(4 * time.Second).acquire("b").complete("b").script("a"),
		"and has it still": newStory().acquire("a").after(4 * time.Second).acquire("b").after(time.Second).extend("b").script("a"),
	} {
		losses := s.Found().Losses
		require.Len(t, losses, 1, name)
		require.Greater(t, losses[0].At-losses[0].Since, 3*time.Second, name)
	}
	losses := newStory().acquire("a").after(4 * time.Second).acquire("b").Found().Losses
	require.Empty(t, losses, "the dead lose nothing")
	losses = newStory().acquire("a").after(2 * time.Second).extend("a").after(4 * time.Second).script("a").Found().Losses
	require.Empty(t, losses, "it did say that it lives")
}

func TestWitness_AllowsWhatItDidNotSee(t *testing.T) {
	t.Parallel()
	s := newStory()
	s.forget()
	found := s.extend("a").after(time.Second).complete("a").acquire("b").Found().Foreign
	require.Empty(t, found, "it may have been acquired before the log flowed again")
	s.after(blindFor).release("b").requireForeignWrite(t, "b removes a record of a")

	paused := newStory().acquire("a")
	paused.at += 5 * time.Second
	found = paused.extend("a").acquire("b").complete("b").after(2 * slack).complete("c").acquire("d").complete("d").Found().Foreign
	require.Len(t, found, 1)
	require.Equal(t, "d writes a record of c", found[0].Detail)
	paused = newStory().acquire("a")
	paused.at += 5 * time.Second
	found = paused.extend("a").acquire("b").complete("b").Found().Foreign
	require.Empty(t, found, "Redis was paused: its time is unknown")

	edge := newStory().acquire("a").after(3*time.Second + slack/2).acquire("b").after(time.Second).complete("a")
	found = edge.Found().Foreign
	require.Empty(t, found, "whether b's acquisition succeeded is not known")
}

func TestParse_ReadsALineOfTheLog(t *testing.T) {
	t.Parallel()
	c := parse(`+1795244485.25 [0 127.0.0.1:53442] "SET" "a b" "{\"x\":\"y\"}\n\x01\\" "PX" "3000"`)
	require.Equal(t, command{at: 1795244485250 * time.Millisecond, args: []string{"set", "a b", "{\"x\":\"y\"}\n\x01\\", "PX", "3000"}}, c)
	require.Equal(t, 3*time.Second, lifetime([]string{"px", "3000"}))
	require.Equal(t, 3*time.Second, lifetime([]string{"ex", "3", "nx", "get"}))
	require.Equal(t, forever, lifetime([]string{"nx", "px"}))

	c = parse(`+1795244485.25 [0 lua] "DEL" "a"`)
	require.Equal(t, command{at: 1795244485250 * time.Millisecond, script: true, args: []string{"del", "a"}}, c)

	for _, line := range []string{"", "+OK", "$-1", `+1795244485.25 [0 lua]`, `+x [0 lua] "DEL"`, `+1795244485.25 [0 lua] "DEL" torn"`} {
		require.Empty(t, parse(line).args, strconv.Quote(line))
	}
}

// The log is a real one here.
func TestFollow_SurvivesARestart(t *testing.T) {
	t.Parallel()
	server, err := localserver.Redis.Start(t.Context(), localserver.Config{DieWithParent: true})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, server.Stop()) })
	addr := server.Addr
	client := redis.NewClient(&redis.Options{Addr: addr})
	defer func() { _ = client.Close() }()
	w, err := Follow(t.Context(), addr, time.Now())
	require.NoError(t, err)

	require.ErrorIs(t, client.SetArgs(t.Context(), key, value("a", "InProgress"), redis.SetArgs{Mode: "NX", Get: true, TTL: 3 * time.Second}).Err(), redis.Nil)
	write := redis.NewScript(`redis.call('GET', KEYS[1]) return redis.call('SET', KEYS[1], ARGV[2], 'PX', 3000)`)
	require.NoError(t, write.Run(t.Context(), client, []string{key}, "a", value("a", "InProgress")).Err())
	require.NoError(t, write.Run(t.Context(), client, []string{key}, "b", value("b", "Completed")).Err())
	require.Eventually(t, func() bool { found := w.Found().Foreign; return len(found) > 0 }, 5*time.Second, 10*time.Millisecond)
	found := w.Found().Foreign
	require.Equal(t, "b writes a record of a", found[0].Detail)
	require.Less(t, found[0].At.Abs(), time.Minute)

	// While there are no requests, the witness does not take Redis to be paused.
	require.ErrorIs(t, client.SetArgs(t.Context(), key+"2", value("a", "InProgress"), redis.SetArgs{Mode: "NX", Get: true, TTL: time.Minute}).Err(), redis.Nil)
	time.Sleep(2 * stall)
	require.NoError(t, write.Run(t.Context(), client, []string{key + "2"}, "b", value("b", "Completed")).Err())
	require.Eventually(t, func() bool { found := w.Found().Foreign; return len(found) > 1 }, 5*time.Second, 10*time.Millisecond)
}

// TestWitness_LetsOneAttemptReplaceADamagedRecord: the attempt whose record was damaged has lost
// it.
func TestWitness_LetsOneAttemptReplaceADamagedRecord(t *testing.T) {
	t.Parallel()
	damaged := func() *story {
		s := newStory().after(blindFor).acquire("first").after(stall)
		s.see(command{at: s.at, args: []string{"set", key, "damaged", "xx", "keepttl"}})
		return s
	}
	replace := func(s *story, owner string) *story {
		return s.script(owner, "set", key, value(owner, "InProgress"), "px", "3000")
	}
	seen := replace(damaged(), "second").after(stall).complete("second").Found()
	require.Empty(t, seen.Foreign)
	require.Empty(t, seen.Losses)
	foreign := replace(damaged(), "second").after(stall).complete("first").Found().Foreign
	require.Len(t, foreign, 1, "its owner is gone")
	foreign = replace(replace(damaged(), "second"), "third").Found().Foreign
	require.Len(t, foreign, 1, "it was damaged no longer")
}
