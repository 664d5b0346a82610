// The workload of test_prometheus_go.py with the official Go client, whose calls Go's interceptors count. Prints the
// metrics as Prometheus would scrape them.
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"strings"
	"time"

	grpcprom "github.com/grpc-ecosystem/go-grpc-middleware/providers/prometheus"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/expfmt"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
)

func main() {
	endpoint, prefix := os.Args[1], os.Args[2]
	metrics := grpcprom.NewClientMetrics()
	registry := prometheus.NewRegistry()
	registry.MustRegister(metrics)
	client, err := clientv3.New(clientv3.Config{
		Endpoints:   []string{endpoint},
		DialTimeout: 10 * time.Second,
		DialOptions: []grpc.DialOption{
			grpc.WithChainUnaryInterceptor(metrics.UnaryClientInterceptor()),
			grpc.WithChainStreamInterceptor(metrics.StreamClientInterceptor()),
		},
	})
	check(err)
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	for number := range 3 {
		_, err = client.Put(ctx, fmt.Sprintf("%s%d", prefix, number), "v")
		check(err)
	}
	_, err = client.Get(ctx, prefix, clientv3.WithPrefix())
	check(err)
	_, err = client.Get(ctx, prefix, clientv3.WithRev(1<<40)) // a future revision
	refused(err)
	lease, err := client.Grant(ctx, 60)
	check(err)
	_, err = client.Revoke(ctx, lease.ID)
	check(err)
	_, err = client.Revoke(ctx, lease.ID) // gone
	refused(err)
	_, err = client.Txn(ctx).Then(clientv3.OpDelete(prefix, clientv3.WithPrefix())).Commit()
	check(err)
	_, err = client.Status(ctx, endpoint)
	check(err)
	_, err = client.MemberList(ctx)
	check(err)
	found, err := registry.Gather()
	check(err)
	for _, family := range found {
		if strings.HasSuffix(family.GetName(), "_total") {
			_, err = expfmt.MetricFamilyToText(os.Stdout, family)
			check(err)
		}
	}
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

func refused(err error) {
	if err == nil {
		log.Fatal("this should have been refused")
	}
}
