// Package db holds the database's schema as migrations, and who may do what with it, so that the
// binary carries the schema it was built for.
package db

import "embed"

// FS has the migrations in its directory "migrations", in the file layout of
// golang-migrate: NNNN_topic.up.sql and NNNN_topic.down.sql.
//
//go:embed migrations/*.sql
var FS embed.FS

// Rights are statements that let the role "service_role" do what the service does, and nothing
// else.
//
//go:embed rights.sql
var Rights string
