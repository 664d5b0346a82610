module goclient

go 1.26.0

require go.etcd.io/etcd/client/v3 v3.7.3
