module etcdctl

go 1.26.0

require go.etcd.io/etcd/etcdctl/v3 v3.7.3
