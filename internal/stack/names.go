package stack

import (
	"github.com/oncepay/oncepay/internal/localserver"
	"github.com/oncepay/oncepay/internal/stack/deployment"
	"github.com/oncepay/oncepay/internal/stack/topology"
)

// The services of a stack, as the switchboard knows them.
const (
	Proxy           = topology.Proxy
	Postgres        = topology.Postgres
	PostgresStandby = topology.PostgresStandby
	Redis           = topology.Redis
	RedisReplica    = topology.RedisReplica
	Sentinel1       = topology.Sentinel1
	Sentinel2       = topology.Sentinel2
	Sentinel3       = topology.Sentinel3
	PSP             = topology.PSP
	Mail            = topology.Mail
	API1            = topology.API1
	API2            = topology.API2
	Nginx           = topology.Nginx
	Console         = topology.Console
)

// Oncepay is the name of the service's program, which the replicas run, and whose commands
// [Stack.Oncepay] runs.
const Oncepay = deployment.Oncepay

// Replicas are the services that answer the API behind nginx.
var Replicas = topology.Replicas

// The kinds of Redis and PostgreSQL.
const (
	Single      = topology.Single
	Sentinel    = topology.Sentinel
	Standby     = topology.Standby
	SyncStandby = topology.SyncStandby
)

// PostgresURL is the connection URL of a stack's database at addr (host:port).
func PostgresURL(addr string) string { return localserver.PostgresURL(addr) }
