// Drives the official Go client. ../drivers/loop.py documents the protocol. The names and sizes are those of
// ../workload.py; every reply is checked against them. With -member it stands in a queue instead, see turns.go; with
// -cache it keeps a prefix in memory, see cache.go; with -big-reads it reads much over TLS, see bigreads.go.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

const clientModule = "go.etcd.io/etcd/client/v3"

var value = strings.Repeat("0123456789abcdef", 16)

// call makes one call and returns the number of bytes of values that it has read.
type call func(ctx context.Context) (int, error)

func main() {
	endpoints := flag.String("endpoints", "", "endpoints, comma-separated")
	prefix := flag.String("prefix", "", "prefix of every key")
	failover := flag.Bool("failover", false, "speak the protocol of ../failover/driver.py")
	cache := flag.Bool("cache", false, "measure a prefix in memory; see cache.go")
	bigReads := flag.String("big-reads", "", "the file of a CA: read much over TLS; see bigreads.go")
	member := flag.String("member", "", "lock, read, write or election: hold -name once, until the next line of stdin")
	name := flag.String("name", "", "of the lock or election, for -member")
	value := flag.String("value", "", "of the candidate, for -member")
	ttl := flag.Int("ttl", 10, "seconds, for -member")
	flag.Parse()
	if *failover {
		serveFailover(strings.Split(*endpoints, ","), *prefix)
		return
	}
	config := clientv3.Config{Endpoints: strings.Split(*endpoints, ","), DialTimeout: 5 * time.Second}
	if *bigReads != "" {
		authority, err := withAuthority(*bigReads)
		if err != nil {
			say(map[string]any{"error": err.Error()})
			os.Exit(1)
		}
		config.TLS = authority
	}
	client, err := clientv3.New(config)
	if err != nil {
		say(map[string]any{"error": err.Error()})
		os.Exit(1)
	}
	defer client.Close()
	if *cache {
		other, err := clientv3.New(clientv3.Config{Endpoints: client.Endpoints(), DialTimeout: 5 * time.Second})
		if err != nil {
			say(map[string]any{"error": err.Error()})
			os.Exit(1)
		}
		defer other.Close()
		serveCache(client, other)
		return
	}
	if *bigReads != "" {
		if err := serveBigReads(client); err != nil {
			say(map[string]any{"error": err.Error()})
			os.Exit(1)
		}
		return
	}
	if *member != "" {
		if err := serveMember(client, *member, *name, *value, *ttl); err != nil {
			say(map[string]any{"error": err.Error()})
			os.Exit(1)
		}
		return
	}

	say(map[string]any{"versions": versions()})
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		answer, err := obey(client, *prefix, lines.Text())
		if err != nil {
			answer = map[string]any{"error": err.Error()}
		}
		say(answer)
	}
}

func obey(client *clientv3.Client, prefix, line string) (map[string]any, error) {
	words := strings.Fields(line)
	if len(words) != 5 {
		return nil, fmt.Errorf("not understood: %q", line)
	}
	keys, err := strconv.Atoi(words[1])
	if err != nil {
		return nil, err
	}
	inFlight, err := strconv.Atoi(words[2])
	if err != nil {
		return nil, err
	}
	seconds, err := strconv.ParseFloat(words[3], 64)
	if err != nil {
		return nil, err
	}
	revision, err := strconv.ParseInt(words[4], 10, 64)
	if err != nil {
		return nil, err
	}
	if words[0] == "stm" {
		return measureSTM(client, prefix, inFlight, time.Duration(seconds*float64(time.Second)))
	}
	if words[0] == "queue" || words[0] == "priority" {
		return measureQueue(client, prefix, words[0], keys, inFlight, time.Duration(seconds*float64(time.Second)))
	}
	if answer, isTurns, err := measureTurns(client, prefix, words); isTurns {
		return answer, err
	}
	calls := make([]call, inFlight)
	expected := 0
	counted := 1
	for i := range calls {
		switch words[0] {
		case "get":
			calls[i], expected = get(client, prefix+"get"), len(value)
		case "put":
			calls[i], expected = put(client, fmt.Sprintf("%sput/%03d", prefix, i)), 0
		case "range":
			calls[i] = get(client, fmt.Sprintf("%srange-%05d/", prefix, keys), clientv3.WithPrefix())
			expected = len(value) * keys
		case "watch":
			calls[i] = watch(client, prefix+"watch/", revision, keys)
			expected, counted = len(value)*keys, keys
		default:
			return nil, fmt.Errorf("no such operation: %s", words[0])
		}
	}
	return measure(calls, expected, counted, time.Duration(seconds*float64(time.Second)))
}

func measure(calls []call, expected, counted int, length time.Duration) (map[string]any, error) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	done := make([]int, len(calls))
	failures := make(chan error, len(calls))
	var workers sync.WaitGroup
	cpu, start := cpuTime(), time.Now()
	for i := range calls {
		workers.Add(1)
		go func() {
			defer workers.Done()
			count, err := work(ctx, calls[i], expected, start.Add(length))
			if err != nil {
				failures <- err
				cancel()
			}
			done[i] = count
		}()
	}
	workers.Wait()
	// The last calls end after the given time. They count, and so does their time.
	elapsed, cpu := time.Since(start), cpuTime()-cpu
	select {
	case err := <-failures:
		return nil, err
	default:
	}
	total := 0
	for _, count := range done {
		total += count * counted
	}
	return map[string]any{"calls": total, "seconds": elapsed.Seconds(), "cpu": cpu.Seconds()}, nil
}

func work(ctx context.Context, next call, expected int, until time.Time) (int, error) {
	done := 0
	for time.Now().Before(until) {
		read, err := next(ctx)
		if err != nil {
			return done, err
		}
		if read != expected {
			return done, fmt.Errorf("%d bytes of values instead of %d", read, expected)
		}
		done++
	}
	return done, nil
}

func get(client *clientv3.Client, key string, options ...clientv3.OpOption) call {
	options = append(options, clientv3.WithSerializable())
	return func(ctx context.Context) (int, error) {
		found, err := client.Get(ctx, key, options...)
		if err != nil {
			return 0, err
		}
		read := 0
		for _, kv := range found.Kvs {
			read += len(kv.Value)
		}
		return read, nil
	}
}

func put(client *clientv3.Client, key string) call {
	return func(ctx context.Context) (int, error) {
		_, err := client.Put(ctx, key, value)
		return 0, err
	}
}

func watch(client *clientv3.Client, prefix string, revision int64, events int) call {
	return func(ctx context.Context) (int, error) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		read, left := 0, events
		for reply := range client.Watch(ctx, prefix, clientv3.WithPrefix(), clientv3.WithRev(revision)) {
			if err := reply.Err(); err != nil {
				return 0, err
			}
			for _, event := range reply.Events {
				read += len(event.Kv.Value)
			}
			if left -= len(reply.Events); left <= 0 {
				return read, nil
			}
		}
		return 0, fmt.Errorf("the watch ended %d events early", left)
	}
}

// cpuTime is the user and system time of this process.
func cpuTime() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		panic(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

func versions() map[string]string {
	found := map[string]string{"go": runtime.Version(), "GOMAXPROCS": strconv.Itoa(runtime.GOMAXPROCS(0))}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, module := range info.Deps {
			if module.Path == clientModule || module.Path == "google.golang.org/grpc" {
				found[module.Path] = module.Version
			}
		}
	}
	return found
}

func say(words map[string]any) {
	line, err := json.Marshal(words)
	if err != nil {
		panic(err)
	}
	fmt.Println(string(line))
}
