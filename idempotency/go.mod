module github.com/oncepay/oncepay/idempotency

go 1.25.0

require (
	github.com/dunglas/httpsfv v1.1.2
	github.com/gowebpki/jcs v1.0.2
	github.com/stretchr/testify v1.12.1
	go.uber.org/goleak v1.3.0
	pgregory.net/rapid v1.3.0
)

require go.yaml.in/yaml/v3 v3.0.5 // indirect
