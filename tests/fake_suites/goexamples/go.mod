module examples

go 1.26.0

require (
	github.com/grpc-ecosystem/go-grpc-middleware/providers/prometheus v1.1.0
	github.com/prometheus/client_golang v1.23.2
	go.etcd.io/etcd/client/v3 v3.7.3
)
