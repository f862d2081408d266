// Package fault breaks a running stack in the ways that production breaks, one or more at a time,
// on a schedule that follows from a seed, and repairs it again. Each file has the kinds of one
// victim; the catalogue joins them. See the README beside this package for how to add one.
package fault

import (
	"fmt"
	"slices"

	"github.com/oncepay/oncepay/loadtest/books"
)

// A Kind is one way to break a stack. It says everything that the campaign needs to know about it,
// so that adding one changes one file.
type Kind struct {
	Name   string
	Victim Victim
	Needs  Need // what the stack must have
	Weight int  // how often it is drawn per round; 0 means once
	Breaks []Damage
	// Excuses are the promises that need not hold while a run of this kind lasts. A kind that
	// excuses nothing is held to every promise.
	Excuses []books.Rule

	draw draw
}

// draw makes a run, with choices from the scheduler's source.
type draw = func(*Scheduler) *Run

// Victim is the part of the stack that a kind breaks.
type Victim string

// The victims, as reports name them.
const (
	Replicas   Victim = "Replicas"
	Redis      Victim = "Redis"
	PostgreSQL Victim = "PostgreSQL"
	Provider   Victim = "Provider"
	Mail       Victim = "Mail"
	Network    Victim = "Network"
	Clients    Victim = "Clients"
)

// Need is what a stack must have for a kind.
type Need string

// The needs. The empty one is met by every stack.
const (
	SingleRedis Need = "a single Redis"
	Sentinel    Need = "Redis with Sentinel"
	SyncStandby Need = "PostgreSQL with a synchronous standby"
	// EarlierRelease runs at both replicas when the campaign begins, with its own schema.
	EarlierRelease Need = "an earlier release"
)

// Damage is an effect of a fault that some check has to know about.
type Damage string

// The damages.
const (
	RedisDown       Damage = "Redis is down"    // nothing listens: what moves money is refused
	RedisLoses      Damage = "Redis loses data" // and with it events that were published
	Overloads       Damage = "more is asked than can be done"
	PaymentsWait    Damage = "hundreds of payments wait for the provider"
	StaysUnfinished Damage = "thousands of requests stay unfinished"
	AccountFloods   Damage = "one account asks for more than its share"
	StrangersFlood  Damage = "strangers send unknown API keys"
	RelayRepeats    Damage = "a relay publishes twice" // it died after publishing, before advancing
)

// catalogue has every kind once.
var catalogue = slices.Concat(replicaKinds, requestKinds, upgradeKinds, redisKinds, sentinelKinds, postgresKinds, standbyKinds, providerKinds, mailKinds,
	networkKinds, clientKinds)

// kindsOf are those that a target can run.
func kindsOf(target Target) []Kind {
	return slices.DeleteFunc(slices.Clone(catalogue), func(k Kind) bool { return !target.has(k.Needs) })
}

// Kinds are the names of all kinds that a target can run.
func Kinds(target Target) (names []string) {
	for _, k := range kindsOf(target) {
		names = append(names, k.Name)
	}
	return names
}

// choose finds kinds of a target by name; no names choose all.
func choose(target Target, only []string) (chosen []Kind, err error) {
	kinds := kindsOf(target)
	for _, name := range only {
		i := slices.IndexFunc(kinds, func(k Kind) bool { return k.Name == name })
		if i < 0 {
			return nil, fmt.Errorf("no kind of fault is called %q; these are: %q", name, Kinds(target))
		}
		chosen = append(chosen, kinds[i])
	}
	if len(only) == 0 {
		return kinds, nil
	}
	return chosen, nil
}

// each changes kinds that have something in common.
func each(kinds []Kind, change func(*Kind)) []Kind {
	for i := range kinds {
		change(&kinds[i])
	}
	return kinds
}
