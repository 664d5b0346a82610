// What the official Go client has above the client, for tests of interoperation: naming, its gRPC resolver, the
// interface for Kubernetes, barriers and queues. Each answer is a line of JSON.
//
//	-do register    Manager.AddEndpoint under a lease, until the next line of stdin; then Manager.DeleteEndpoint
//	-do follow      Manager.NewWatchChannel: the addresses after each batch
//	-do resolve     the gRPC resolver: the addresses of each state
//	-do hold        Barrier.Hold, until the next line of stdin; then Barrier.Release
//	-do wait        Barrier.Wait
//	-do double      DoubleBarrier.Enter of -count participants; DoubleBarrier.Leave at the next line of stdin
//	-do enqueue     Enqueue of -count items, into a PriorityQueue if there is a -priority
//	-do dequeue     Dequeue of -count items, each a line
//	-do kubernetes  the calls of tests/integration/test_optimistic.py
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
	recipe "go.etcd.io/etcd/client/v3/experimental/recipes"
	"go.etcd.io/etcd/client/v3/kubernetes"
	"go.etcd.io/etcd/client/v3/naming/endpoints"
	etcdresolver "go.etcd.io/etcd/client/v3/naming/resolver"
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/serviceconfig"
)

func main() {
	endpoint := flag.String("endpoint", "", "of etcd")
	do := flag.String("do", "", "register, follow, resolve, hold, wait, double, enqueue, dequeue or kubernetes")
	target := flag.String("target", "", "the service, or the prefix of the keys")
	address := flag.String("address", "", "to register")
	metadata := flag.String("metadata", "null", "to register, as JSON")
	ttl := flag.Int64("ttl", 10, "seconds")
	count := flag.Int("count", 2, "participants, or items")
	priority := flag.Int("priority", -1, "of the items")
	flag.Parse()
	config := clientv3.Config{Endpoints: []string{*endpoint}, DialTimeout: 5 * time.Second}
	client, err := clientv3.New(config)
	check(err)
	defer client.Close()
	ctx := context.Background()
	switch *do {
	case "register":
		register(ctx, client, *target, *address, *metadata, *ttl)
	case "follow":
		follow(ctx, client, *target)
	case "resolve":
		resolve(client, *target)
	case "hold":
		barrier := recipe.NewBarrier(client, *target)
		check(barrier.Hold())
		say("held")
		bufio.NewScanner(os.Stdin).Scan()
		check(barrier.Release())
		say("released")
	case "wait":
		say("waiting")
		check(recipe.NewBarrier(client, *target).Wait())
		say("released")
	case "double":
		session, err := concurrency.NewSession(client, concurrency.WithTTL(int(*ttl)))
		check(err)
		defer session.Close()
		barrier := recipe.NewDoubleBarrier(session, *target, *count)
		say("entering")
		check(barrier.Enter())
		say("in")
		bufio.NewScanner(os.Stdin).Scan()
		check(barrier.Leave())
		say("out")
	case "enqueue":
		queue, urgent := recipe.NewQueue(client, *target), recipe.NewPriorityQueue(client, *target)
		for i := range *count {
			value := fmt.Sprintf("go %d", i)
			if *priority < 0 {
				check(queue.Enqueue(value))
			} else {
				check(urgent.Enqueue(value, uint16(*priority)))
			}
		}
		say("put")
	case "dequeue":
		dequeue := recipe.NewQueue(client, *target).Dequeue
		if *priority >= 0 {
			dequeue = recipe.NewPriorityQueue(client, *target).Dequeue
		}
		say("taking")
		for range *count {
			value, err := dequeue()
			check(err)
			say(value)
		}
	case "kubernetes":
		k, err := kubernetes.New(config)
		check(err)
		defer k.Close()
		script(ctx, k, *target)
	}
}

func register(ctx context.Context, client *clientv3.Client, target, address, metadata string, ttl int64) {
	manager, err := endpoints.NewManager(client, target)
	check(err)
	lease, err := client.Grant(ctx, ttl)
	check(err)
	_, err = client.KeepAlive(ctx, lease.ID)
	check(err)
	entry := endpoints.Endpoint{Addr: address}
	check(json.Unmarshal([]byte(metadata), &entry.Metadata))
	key := target + "/" + address
	check(manager.AddEndpoint(ctx, key, entry, clientv3.WithLease(lease.ID)))
	say(key)
	bufio.NewScanner(os.Stdin).Scan()
	check(manager.DeleteEndpoint(ctx, key))
	_, err = client.Revoke(ctx, lease.ID)
	check(err)
}

func follow(ctx context.Context, client *clientv3.Client, target string) {
	manager, err := endpoints.NewManager(client, target)
	check(err)
	channel, err := manager.NewWatchChannel(ctx)
	check(err)
	say("watching")
	known := map[string]any{}
	for batch := range channel {
		for _, update := range batch {
			if update.Op == endpoints.Add {
				known[update.Key] = []any{update.Endpoint.Addr, update.Endpoint.Metadata}
			} else {
				delete(known, update.Key)
			}
		}
		shown := []any{}
		for _, key := range slices.Sorted(maps.Keys(known)) {
			shown = append(shown, known[key])
		}
		say(shown)
	}
}

// connection is told what a gRPC channel would be told.
type connection struct{ resolver.ClientConn }

func (connection) UpdateState(state resolver.State) error {
	addresses := []string{}
	for _, endpoint := range state.Endpoints {
		for _, address := range endpoint.Addresses {
			addresses = append(addresses, address.Addr)
		}
	}
	slices.Sort(addresses)
	say(addresses)
	return nil
}

func (connection) ReportError(err error) { say(err.Error()) }

func (connection) NewAddress([]resolver.Address) {}

func (connection) ParseServiceConfig(string) *serviceconfig.ParseResult { return nil }

func resolve(client *clientv3.Client, target string) {
	builder, err := etcdresolver.NewBuilder(client)
	check(err)
	parsed, err := url.Parse("etcd:///" + target)
	check(err)
	built, err := builder.Build(resolver.Target{URL: *parsed}, connection{}, resolver.BuildOptions{})
	check(err)
	defer built.Close()
	say("resolving")
	bufio.NewScanner(os.Stdin).Scan()
}

func script(ctx context.Context, k *kubernetes.Client, prefix string) {
	put, err := k.Put(ctx, prefix+"other", "v")
	check(err)
	start := put.Header.Revision
	key := prefix + "k"
	lines := []any{}
	add := func(succeeded bool, revision int64, value []byte, modRevision int64, err error) {
		check(err)
		var kv any
		if value != nil {
			kv = []any{string(value), modRevision - start}
		}
		lines = append(lines, []any{succeeded, revision - start, kv})
	}
	optimisticPut := func(value string, expected int64, get bool) {
		r, err := k.OptimisticPut(ctx, key, []byte(value), expected, kubernetes.PutOptions{GetOnFailure: get})
		if r.KV != nil {
			add(r.Succeeded, r.Revision, r.KV.Value, r.KV.ModRevision, err)
		} else {
			add(r.Succeeded, r.Revision, nil, 0, err)
		}
	}
	optimisticDelete := func(expected int64, get bool) {
		r, err := k.OptimisticDelete(ctx, key, expected, kubernetes.DeleteOptions{GetOnFailure: get})
		if r.KV != nil {
			add(r.Succeeded, r.Revision, r.KV.Value, r.KV.ModRevision, err)
		} else {
			add(r.Succeeded, r.Revision, nil, 0, err)
		}
	}
	found, err := k.Kubernetes.Get(ctx, key, kubernetes.GetOptions{})
	check(err)
	lines = append(lines, []any{nil, found.Revision - start})
	optimisticPut("a", 0, true)
	optimisticPut("b", 0, true)
	optimisticPut("b", 0, false)
	optimisticPut("b", start+1, true)
	optimisticPut("c", start+1, true)
	optimisticDelete(start+1, true)
	optimisticDelete(start+1, false)
	found, err = k.Kubernetes.Get(ctx, key, kubernetes.GetOptions{Revision: start + 1})
	check(err)
	lines = append(lines, []any{string(found.KV.Value), found.Revision - start})
	for _, name := range strings.Split("x y z", " ") {
		_, err := k.OptimisticPut(ctx, prefix+"list/"+name, []byte(name), 0, kubernetes.PutOptions{})
		check(err)
	}
	list := func(options kubernetes.ListOptions) string {
		page, err := k.List(ctx, prefix+"list/", options)
		check(err)
		values, last := []string{}, ""
		for _, kv := range page.Kvs {
			values, last = append(values, string(kv.Value)), string(kv.Key)
		}
		lines = append(lines, []any{values, page.Count, page.Revision - start})
		return last + "\x00"
	}
	next := list(kubernetes.ListOptions{Limit: 2})
	list(kubernetes.ListOptions{Limit: 2, Revision: start + 5, Continue: next})
	count, err := k.Count(ctx, prefix, kubernetes.CountOptions{})
	check(err)
	lines = append(lines, count)
	optimisticDelete(start+2, true)
	optimisticDelete(start+2, true)
	optimisticDelete(0, true)
	say(lines)
}

func say(answer any) {
	line, err := json.Marshal(answer)
	check(err)
	fmt.Println(string(line))
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
