// Package topology says what a stack consists of: its services, the ports that they listen on, and
// the connections between them.
package topology

import (
	"cmp"
	"slices"
)

// The services of a stack.
const (
	Proxy    = "proxy"
	Postgres = "postgres"
	Redis    = "redis"
	PSP      = "pspsim"
	Mail     = "mail"
	API1     = "api-1"
	API2     = "api-2"
	Nginx    = "nginx"

	// If it is asked for.
	Console = "console"

	// With a standby only.
	PostgresStandby = "postgres-standby"

	// With Sentinel only.
	RedisReplica = "redis-replica"
	Sentinel1    = "sentinel-1"
	Sentinel2    = "sentinel-2"
	Sentinel3    = "sentinel-3"
)

var (
	// Services are the services of a stack with a single Redis and a single PostgreSQL, in the
	// order in which they are listed.
	Services = []string{Proxy, Postgres, Redis, PSP, Mail, API1, API2, Nginx}

	// Replicas are the services that answer the API behind nginx.
	Replicas = []string{API1, API2}

	// RedisPair are the two servers of which Sentinel appoints one.
	RedisPair = []string{Redis, RedisReplica}

	// Sentinels are the services that appoint the master of a replicated Redis.
	Sentinels = []string{Sentinel1, Sentinel2, Sentinel3}

	// PostgresPair are the two servers of which one is the primary.
	PostgresPair = []string{Postgres, PostgresStandby}

	// SentinelServices are those that a stack with Sentinel has in addition.
	SentinelServices = append([]string{RedisReplica}, Sentinels...)
)

// The kinds of Redis and PostgreSQL that a stack may have.
const (
	// Single is one server.
	Single = "single"
	// Sentinel is a Redis primary and a replica of it, and three sentinels that appoint the replica
	// when the primary is gone.
	Sentinel = "sentinel"
	// Standby is a PostgreSQL primary and a hot standby that follows it asynchronously: a failover
	// loses the commits that had not arrived.
	Standby = "standby"
	// SyncStandby answers a commit only when the standby has applied it
	// (synchronous_commit=remote_apply): a failover loses nothing that was answered, but without
	// the standby nothing is committed.
	SyncStandby = "sync-standby"
)

// Topology is which services a stack has, and where they listen. Its JSON form is part of the
// stack's state.
type Topology struct {
	// Offset is added to every port.
	Offset int `json:"port_offset"`
	// Direct connects the services to each other without the fault proxy.
	Direct bool `json:"direct,omitempty"`
	// Postgres is Standby, SyncStandby, or empty for a single server.
	Postgres string `json:"postgres,omitempty"`
	// Promoted is the former standby that takes writes; empty: the first server does.
	Promoted string `json:"promoted,omitempty"`
	// Ended is set while the former primary is down, with commits that the new one may not have.
	Ended bool `json:"ended,omitempty"`
	// Redis is Sentinel, or empty for a single server.
	Redis string `json:"redis,omitempty"`
	// Console is set if there is one.
	Console bool `json:"console,omitempty"`
}

// IsReplicated reports whether Redis is of the kind Sentinel.
func (t *Topology) IsReplicated() bool { return t.Redis == Sentinel }

// HasStandby reports whether PostgreSQL has a standby.
func (t *Topology) HasStandby() bool { return t.Postgres != "" }

// Primary is the PostgreSQL that takes writes.
func (t *Topology) Primary() string { return cmp.Or(t.Promoted, Postgres) }

// StandbyServer is the other one.
func (t *Topology) StandbyServer() string {
	if t.Primary() == Postgres {
		return PostgresStandby
	}
	return Postgres
}

// Services are those that the stack has, in the order in which they are listed.
func (t *Topology) Services() []string {
	list := slices.Clone(Services)
	if t.IsReplicated() {
		list = slices.Insert(list, slices.Index(list, Redis)+1, SentinelServices...)
	}
	if t.HasStandby() {
		list = slices.Insert(list, slices.Index(list, Postgres)+1, PostgresStandby)
	}
	if t.Console {
		list = append(list, Console)
	}
	if t.Direct {
		list = slices.DeleteFunc(list, func(name string) bool { return name == Proxy })
	}
	return list
}
