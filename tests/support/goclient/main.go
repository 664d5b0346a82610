// What the official Go client sees of an empty server: each answer is a line of JSON, without ids and times, so that two
// servers can be compared.
//
//	-do kv, watch, lease, concurrency or members
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
	"go.uber.org/zap"
)

var ctx, stop = context.WithTimeout(context.Background(), 100*time.Second)

func main() {
	defer stop()
	endpoints := flag.String("endpoints", "", "of etcd, separated by commas")
	do := flag.String("do", "", "kv, watch, lease, concurrency or members")
	flag.Parse()
	config := clientv3.Config{
		Endpoints: strings.Split(*endpoints, ","), DialTimeout: 20 * time.Second, Logger: zap.NewNop(),
	}
	client, err := clientv3.New(config)
	check(err)
	defer client.Close()
	switch *do {
	case "kv":
		kv(client)
	case "watch":
		watch(client)
	case "lease":
		lease(client)
	case "concurrency":
		locks(client)
		elections(client)
		transactions(client)
	case "members":
		members(client, config)
	}
}

// Keys.

func kv(client *clientv3.Client) {
	show := func(name string, found *clientv3.GetResponse, err error) {
		if err != nil {
			say(name, err.Error())
			return
		}
		keys := [][]any{}
		for _, kv := range found.Kvs {
			keys = append(keys, []any{string(kv.Key), string(kv.Value), kv.CreateRevision, kv.ModRevision, kv.Version})
		}
		say(name, keys, found.Count, found.More, found.Header.Revision)
	}
	put := func(key, value string, options ...clientv3.OpOption) {
		done, err := client.Put(ctx, key, value, options...)
		if err != nil {
			say("put "+key, err.Error())
			return
		}
		previous := ""
		if done.PrevKv != nil {
			previous = string(done.PrevKv.Value)
		}
		say("put "+key, done.Header.Revision, previous)
	}
	get := func(name, key string, options ...clientv3.OpOption) {
		found, err := client.Get(ctx, key, options...)
		show(name, found, err)
	}
	put("", "1")
	put("a", strings.Repeat("x", 3<<19))
	put("a", "1", clientv3.WithLease(500))
	put("a", "", clientv3.WithIgnoreValue())
	for _, key := range []string{"a", "b", "c", "c", "c", "foo", "foo/abc", "fop"} {
		put(key, "v-"+key, clientv3.WithPrevKV())
	}
	put("a", "", clientv3.WithIgnoreValue())
	put("a", "w", clientv3.WithIgnoreLease(), clientv3.WithPrevKV())
	get("range", "a", clientv3.WithRange("c"))
	get("serializable", "a", clientv3.WithRange("x"), clientv3.WithSerializable())
	get("revision", "a", clientv3.WithRange("x"), clientv3.WithRev(3))
	get("future", "a", clientv3.WithRev(1000))
	get("prefix", "foo", clientv3.WithPrefix())
	get("from", "fa", clientv3.WithFromKey())
	get("everything", "", clientv3.WithFromKey(), clientv3.WithKeysOnly())
	get("count", "", clientv3.WithPrefix(), clientv3.WithCountOnly())
	get("limit", "", clientv3.WithPrefix(), clientv3.WithLimit(2))
	get("minimum", "", clientv3.WithPrefix(), clientv3.WithMinModRev(5), clientv3.WithMaxCreateRev(7))
	for _, target := range []clientv3.SortTarget{
		clientv3.SortByKey, clientv3.SortByVersion, clientv3.SortByCreateRevision, clientv3.SortByModRevision,
		clientv3.SortByValue,
	} {
		for _, order := range []clientv3.SortOrder{clientv3.SortNone, clientv3.SortAscend, clientv3.SortDescend} {
			get(fmt.Sprint("sorted ", target, order), "", clientv3.WithPrefix(), clientv3.WithSort(target, order))
		}
	}
	for _, one := range [][]clientv3.OpOption{
		{}, {clientv3.WithRange("c")}, {clientv3.WithPrefix()}, {clientv3.WithFromKey(), clientv3.WithPrevKV()},
	} {
		done, err := client.Delete(ctx, "b", one...)
		check(err)
		say("delete", done.Deleted, len(done.PrevKvs), done.Header.Revision)
	}
	txn(client)
	_, err := client.Compact(ctx, 6)
	say("compact", text(err))
	_, err = client.Compact(ctx, 6)
	say("compact again", text(err))
	_, err = client.Compact(ctx, 600)
	say("compact the future", text(err))
	get("compacted", "a", clientv3.WithRev(4))
	get("at the compaction", "a", clientv3.WithRev(6))
	var wait sync.WaitGroup
	for i := range 200 { // more at once than HTTP/2 libraries allow by default
		wait.Go(func() {
			_, err := client.Put(ctx, fmt.Sprintf("many/%03d", i), strings.Repeat("x", 5000))
			check(err)
		})
	}
	wait.Wait()
	found, err := client.Get(ctx, "many/", clientv3.WithPrefix())
	check(err)
	say("many", found.Count, found.Header.Revision)
}

func txn(client *clientv3.Client) {
	commit := func(name string, txn clientv3.Txn) {
		done, err := txn.Commit()
		if err != nil {
			say(name, err.Error())
			return
		}
		say(name, done.Succeeded, len(done.Responses), done.Header.Revision)
	}
	put := clientv3.OpPut
	commit("too many", client.Txn(ctx).Then(slices.Repeat([]clientv3.Op{put("x", "")}, 129)...))
	commit("twice", client.Txn(ctx).Then(put("x", ""), put("x", "")))
	commit("first", client.Txn(ctx).If(clientv3.Compare(clientv3.CreateRevision("t"), "=", 0)).Then(put("t", "1")))
	commit("second", client.Txn(ctx).If(clientv3.Compare(clientv3.CreateRevision("t"), "=", 0)).Else(put("t", "2")))
	ranged := clientv3.Compare(clientv3.CreateRevision("t").WithPrefix(), ">", 100)
	commit("compare range", client.Txn(ctx).If(ranged).Then(put("u", "")).Else(clientv3.OpGet("t")))
	inner := clientv3.OpTxn(nil, []clientv3.Op{put("n/1", ""), clientv3.OpDelete("t")}, []clientv3.Op{put("n/2", "")})
	commit("nested", client.Txn(ctx).If(clientv3.Compare(clientv3.Value("t"), "=", "2")).Then(inner, put("n/3", "")))
}

// Watches.

func watch(client *clientv3.Client) {
	next := func(name string, channel clientv3.WatchChan, count int) {
		seen := []string{}
		for len(seen) < count {
			answer, ok := <-channel
			if !ok {
				seen = append(seen, "closed")
				break
			}
			if answer.Created {
				seen = append(seen, "created")
			} else if answer.Err() != nil {
				seen = append(seen, fmt.Sprint("error ", answer.Err(), answer.CompactRevision, answer.Canceled))
			} else if answer.IsProgressNotify() {
				seen = append(seen, fmt.Sprint("progress ", answer.Header.Revision))
			}
			for _, event := range answer.Events {
				previous := "-"
				if event.PrevKv != nil {
					previous = string(event.PrevKv.Value)
				}
				seen = append(seen, fmt.Sprint(event.Type, " ", string(event.Kv.Key), event.Kv.ModRevision, event.IsCreate(), previous))
			}
		}
		say(name, seen)
	}
	put := func(keys ...string) {
		for _, key := range keys {
			_, err := client.Put(ctx, key, "v-"+key)
			check(err)
		}
	}
	inner, cancel := context.WithCancel(ctx)
	created := clientv3.WithCreatedNotify()
	one := client.Watch(inner, "a", created)
	prefix := client.Watch(inner, "a", clientv3.WithPrefix(), clientv3.WithPrevKV(), created)
	noPut := client.Watch(inner, "", clientv3.WithPrefix(), clientv3.WithFilterPut(), created)
	noDelete := client.Watch(inner, "", clientv3.WithPrefix(), clientv3.WithFilterDelete(), created, clientv3.WithFragment())
	for name, channel := range map[string]clientv3.WatchChan{"": one, " ": prefix, "  ": noPut, "   ": noDelete} {
		_ = name
		<-channel
	}
	put("a", "ab", "b", "a")
	_, err := client.Delete(ctx, "a", clientv3.WithPrefix())
	check(err)
	put("a")
	next("one key", one, 4)
	next("prefix", prefix, 6)
	next("no puts", noPut, 2)
	next("no deletions", noDelete, 5)
	check(client.RequestProgress(inner))
	next("progress", one, 1)
	cancel()
	next("cancelled", one, 1)
	next("from the past", client.Watch(ctx, "a", clientv3.WithRev(2), clientv3.WithPrefix()), 6)
	future := client.Watch(ctx, "a", clientv3.WithRev(10))
	put("a", "b", "a", "a")
	next("from the future", future, 1)
	_, err = client.Compact(ctx, 5)
	check(err)
	next("compacted", client.Watch(ctx, "a", clientv3.WithRev(2)), 2)
	next("empty range", client.Watch(ctx, "b", clientv3.WithRange("a")), 2)
	var many []clientv3.WatchChan
	for range 150 { // each has a stream of its own
		separate := clientv3.WithRequireLeader(context.WithValue(ctx, new(int), 0))
		many = append(many, client.Watch(separate, "many", created))
	}
	for _, channel := range many {
		<-channel
	}
	put("many")
	for _, channel := range many {
		<-channel
	}
	watcher := clientv3.NewWatcher(client)
	channel := watcher.Watch(ctx, "a", created)
	<-channel
	check(watcher.Close())
	next("closed watcher", channel, 1)
}

// Leases.

func lease(client *clientv3.Client) {
	_, err := client.Put(ctx, "a", "", clientv3.WithLease(123))
	say("put without", text(err))
	_, err = client.Revoke(ctx, 123)
	say("revoke without", text(err))
	_, err = client.KeepAliveOnce(ctx, 123)
	say("renew without", text(err))
	_, err = client.Grant(ctx, clientv3.MaxLeaseTTL+1)
	say("too long", text(err))
	granted, err := client.Grant(ctx, 60)
	check(err)
	say("granted", granted.TTL, granted.ID != 0)
	short, err := client.Grant(ctx, 1)
	check(err)
	say("short", short.TTL)
	for _, key := range []string{"b", "a", "c"} {
		_, err = client.Put(ctx, key, "", clientv3.WithLease(granted.ID))
		check(err)
	}
	_, err = client.Put(ctx, "c", "")
	check(err)
	left, err := client.TimeToLive(ctx, granted.ID, clientv3.WithAttachedKeys())
	check(err)
	keys := []string{}
	for _, key := range left.Keys {
		keys = append(keys, string(key))
	}
	slices.Sort(keys) // etcd's order is left to chance
	say("left", left.GrantedTTL, left.TTL > 50, keys)
	without, err := client.TimeToLive(ctx, 123)
	check(err)
	say("left without", without.TTL, without.GrantedTTL)
	once, err := client.KeepAliveOnce(ctx, granted.ID)
	check(err)
	say("renewed", once.TTL)
	inner, cancel := context.WithCancel(ctx)
	alive, err := client.KeepAlive(inner, granted.ID)
	check(err)
	say("kept alive", (<-alive).TTL)
	cancel()
	for range alive {
	}
	events := client.Watch(ctx, "", clientv3.WithPrefix(), clientv3.WithRev(6))
	list, err := client.Leases(ctx)
	check(err)
	say("list", len(list.Leases) >= 1)
	_, err = client.Revoke(ctx, granted.ID)
	check(err)
	gone := []string{}
	for _, event := range (<-events).Events {
		gone = append(gone, fmt.Sprint(event.Type, string(event.Kv.Key), event.Kv.ModRevision))
	}
	say("revoked", gone)
	lost, err := client.KeepAlive(ctx, granted.ID)
	check(err)
	_, ok := <-lost
	say("kept alive without", ok)
	_, err = client.Put(ctx, "expires", "", clientv3.WithLease(short.ID))
	if errors.Is(err, context.DeadlineExceeded) {
		check(err)
	}
	for {
		left, err := client.TimeToLive(ctx, short.ID)
		check(err)
		if left.TTL < 0 {
			break
		}
		time.Sleep(50 * time.Millisecond)
	}
	found, err := client.Get(ctx, "expires")
	check(err)
	say("expired", found.Count)
}

// Recipes.

func session(client *clientv3.Client) *concurrency.Session {
	made, err := concurrency.NewSession(client, concurrency.WithTTL(30))
	check(err)
	return made
}

func locks(client *clientv3.Client) {
	first, second := session(client), session(client)
	one, two := concurrency.NewMutex(first, "lock"), concurrency.NewMutex(second, "lock")
	check(one.Lock(ctx))
	say("try", text(two.TryLock(ctx)))
	done, err := client.Txn(ctx).If(one.IsOwner()).Then(clientv3.OpPut("guarded", "")).Commit()
	check(err)
	say("owner", done.Succeeded)
	waits := make(chan error)
	go func() { waits <- two.Lock(ctx) }()
	check(one.Unlock(ctx))
	check(<-waits)
	say("then", text(one.TryLock(ctx)))
	check(second.Close())
	check(one.Lock(ctx))
	check(one.Unlock(ctx))
	say("unlocked", text(one.Unlock(ctx)))
	counter := 0
	var wait sync.WaitGroup
	for range 8 {
		wait.Go(func() {
			own := session(client)
			locker := concurrency.NewLocker(own, "counter")
			for range 3 {
				locker.Lock()
				counter++
				locker.Unlock()
			}
			check(own.Close())
		})
	}
	wait.Wait()
	say("counted", counter)
	check(first.Close())
}

func elections(client *clientv3.Client) {
	first, second := session(client), session(client)
	one, two := concurrency.NewElection(first, "election"), concurrency.NewElection(second, "election")
	_, err := one.Leader(ctx)
	say("no leader", text(err))
	inner, cancel := context.WithCancel(ctx)
	observed := one.Observe(inner)
	check(one.Campaign(ctx, "one"))
	say("observed", string((<-observed).Kvs[0].Value))
	check(one.Proclaim(ctx, "uno"))
	say("proclaimed", string((<-observed).Kvs[0].Value))
	won := make(chan error)
	go func() { won <- two.Campaign(ctx, "two") }()
	check(one.Resign(ctx))
	check(<-won)
	say("next", string((<-observed).Kvs[0].Value), two.Rev() > 0)
	leader, err := two.Leader(ctx)
	check(err)
	say("leader", string(leader.Kvs[0].Value))
	cancel()
	for range observed {
	}
	check(first.Close())
	check(second.Close())
	_, err = one.Leader(ctx)
	say("closed", text(err))
}

func transactions(client *clientv3.Client) {
	for _, level := range []concurrency.Isolation{
		concurrency.SerializableSnapshot, concurrency.Serializable, concurrency.RepeatableReads, concurrency.ReadCommitted,
	} {
		key := fmt.Sprint("stm/", level)
		var wait sync.WaitGroup
		for range 5 {
			wait.Go(func() {
				_, err := concurrency.NewSTM(client, func(stm concurrency.STM) error {
					stm.Put(key, stm.Get(key)+"x")
					return nil
				}, concurrency.WithIsolation(level))
				check(err)
			})
		}
		wait.Wait()
		found, err := client.Get(ctx, key)
		check(err)
		say("stm", len(found.Kvs[0].Value) == 5 || level == concurrency.ReadCommitted)
	}
	_, err := concurrency.NewSTM(client, func(stm concurrency.STM) error {
		stm.Put("aborted", "")
		return errors.New("aborted")
	})
	found, _ := client.Get(ctx, "aborted")
	say("aborted", text(err), found.Count)
	_, err = concurrency.NewSTM(client, func(stm concurrency.STM) error {
		stm.Put("new", "1")
		stm.Del("stm/0")
		say("read", stm.Get("new"), stm.Rev("stm/1") > 0, stm.Rev("nothing"))
		return nil
	})
	check(err)
}

// Members.

func members(client *clientv3.Client, config clientv3.Config) {
	list, err := client.MemberList(ctx)
	check(err)
	say("members", len(list.Members), list.Header.Revision)
	for _, endpoint := range client.Endpoints() {
		status, err := client.Status(ctx, endpoint)
		check(err)
		say("status", status.Version, status.StorageVersion, status.Leader != 0, status.IsLearner, len(status.Errors))
		hash, err := client.HashKV(ctx, endpoint, 0)
		check(err)
		say("hash", hash.CompactRevision, hash.HashRevision)
		_, err = client.Defragment(ctx, endpoint)
		say("defragment", text(err))
	}
	check(client.Sync(ctx))
	say("endpoints", len(client.Endpoints()))
	alarms, err := client.AlarmList(ctx)
	check(err)
	say("alarms", len(alarms.Alarms))
	_, err = client.MoveLeader(ctx, 1)
	say("leader", text(err))
	for _, err := range []error{
		ignoring(client.UserAdd(ctx, "root", "pw")), ignoring(client.RoleAdd(ctx, "root")),
		ignoring(client.UserGrantRole(ctx, "root", "root")), ignoring(client.UserAdd(ctx, "u", "pu")),
		ignoring(client.RoleAdd(ctx, "r")), ignoring(client.UserGrantRole(ctx, "u", "r")),
		ignoring(client.RoleGrantPermission(ctx, "r", "a", "b", clientv3.PermissionType(clientv3.PermReadWrite))),
		ignoring(client.AuthEnable(ctx)),
	} {
		say("users", text(err))
	}
	_, err = client.Put(ctx, "a", "")
	say("nobody", text(err))
	config.Username, config.Password = "u", "wrong"
	_, err = clientv3.New(config)
	say("wrong", text(err))
	config.Password = "pu"
	user, err := clientv3.New(config)
	check(err)
	_, err = user.Put(ctx, "a", "")
	say("permitted", text(err))
	_, err = user.Put(ctx, "b", "")
	say("denied", text(err))
	denied := <-user.Watch(ctx, "b")
	say("watch", text(denied.Err()), denied.Canceled)
	config.Username, config.Password = "root", "pw"
	root, err := clientv3.New(config)
	check(err)
	say("disabled", text(ignoring(root.AuthDisable(ctx))))
	check(user.Close())
	check(root.Close())
}

func ignoring[T any](_ T, err error) error { return err }

// What is said.

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func say(answer ...any) {
	line, err := json.Marshal(answer)
	check(err)
	fmt.Println(string(line))
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}
