// A prefix in memory as Go programs keep it by hand: a get, a watch behind it, a map, and sorted keys. The client has
// no cache; the module go.etcd.io/etcd/cache is experimental. ../cache.py says what is measured.
package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"sort"
	"strings"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

type cached struct {
	client   *clientv3.Client
	stop     context.CancelFunc
	lock     sync.RWMutex
	moved    *sync.Cond // broadcast when the revision has moved on
	values   map[string]*mvccpb.KeyValue
	keys     []string // sorted
	revision int64
	arrived  map[int64]time.Time // revisions of the watch; nil unless they are measured
}

// load reads the prefix and follows it.
func load(client *clientv3.Client, prefix string) (*cached, error) {
	found, err := client.Get(context.Background(), prefix, clientv3.WithPrefix())
	if err != nil {
		return nil, err
	}
	made := &cached{client: client, values: make(map[string]*mvccpb.KeyValue), revision: found.Header.Revision}
	made.moved = sync.NewCond(&made.lock)
	for _, kv := range found.Kvs {
		key := string(kv.Key)
		made.values[key] = kv
		made.keys = append(made.keys, key)
	}
	ctx, stop := context.WithCancel(context.Background())
	made.stop = stop
	replies := client.Watch(ctx, prefix, clientv3.WithPrefix(), clientv3.WithRev(found.Header.Revision+1))
	go func() {
		for reply := range replies {
			made.apply(reply)
		}
	}()
	return made, nil
}

func (c *cached) apply(reply clientv3.WatchResponse) {
	c.lock.Lock()
	defer c.lock.Unlock()
	now := time.Now()
	for _, event := range reply.Events {
		key := string(event.Kv.Key)
		at := sort.SearchStrings(c.keys, key)
		_, isThere := c.values[key]
		if event.Type == clientv3.EventTypeDelete {
			delete(c.values, key)
			if isThere {
				c.keys = append(c.keys[:at], c.keys[at+1:]...)
			}
		} else {
			c.values[key] = event.Kv
			if !isThere {
				c.keys = append(c.keys, "")
				copy(c.keys[at+1:], c.keys[at:])
				c.keys[at] = key
			}
		}
		if c.arrived != nil {
			c.arrived[event.Kv.ModRevision] = now
		}
	}
	if reply.Header.Revision > c.revision {
		c.revision = reply.Header.Revision
		c.moved.Broadcast()
	}
}

func (c *cached) get(key string) *mvccpb.KeyValue {
	c.lock.RLock()
	defer c.lock.RUnlock()
	return c.values[key]
}

func (c *cached) rangeOf(prefix string) map[string]*mvccpb.KeyValue {
	c.lock.RLock()
	defer c.lock.RUnlock()
	found := make(map[string]*mvccpb.KeyValue)
	for at := sort.SearchStrings(c.keys, prefix); at < len(c.keys) && strings.HasPrefix(c.keys[at], prefix); at++ {
		found[c.keys[at]] = c.values[c.keys[at]]
	}
	return found
}

// waitCurrent is what makes a read linearizable: a linearizable get for the revision, and progress up to it.
func (c *cached) waitCurrent(ctx context.Context) error {
	found, err := c.client.Get(ctx, "current/", clientv3.WithCountOnly())
	if err != nil {
		return err
	}
	c.lock.RLock()
	isThere := c.revision >= found.Header.Revision
	c.lock.RUnlock()
	if isThere {
		return nil
	}
	if err := c.client.RequestProgress(ctx); err != nil {
		return err
	}
	c.lock.Lock()
	defer c.lock.Unlock()
	for c.revision < found.Header.Revision {
		c.moved.Wait()
	}
	return nil
}

func serveCache(client, other *clientv3.Client) {
	say(map[string]any{"versions": versions()})
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		figures, err := measureCache(client, other, lines.Text())
		if err != nil {
			say(map[string]any{"error": err.Error()})
		} else {
			say(map[string]any{"figures": figures})
		}
	}
}

func measureCache(client, other *clientv3.Client, line string) ([]float64, error) {
	var what string
	var keys, count int
	if _, err := fmt.Sscan(line, &what, &keys, &count); err != nil {
		return nil, fmt.Errorf("not understood: %q: %w", line, err)
	}
	switch what {
	case "local":
		return measureLocal(client, keys)
	case "load":
		began := time.Now()
		loaded, err := load(client, "load/")
		if err != nil {
			return nil, err
		}
		taken := time.Since(began)
		loaded.stop()
		return []float64{taken.Seconds()}, nil
	case "current":
		return measureCurrent(client, other, count)
	case "lag":
		return measureLag(client, other, count)
	}
	return nil, fmt.Errorf("no such measurement: %s", what)
}

var sink any // so that no read is optimised away

// measureLocal returns microseconds of a get, and of a range of 100 keys.
func measureLocal(client *clientv3.Client, keys int) ([]float64, error) {
	loaded, err := load(client, "load/")
	if err != nil {
		return nil, err
	}
	defer loaded.stop()
	key := fmt.Sprintf("load/%08d", keys/2)
	part := fmt.Sprintf("load/%06d", keys/200)
	if len(loaded.rangeOf(part)) != 100 {
		return nil, fmt.Errorf("%d keys below %s", len(loaded.rangeOf(part)), part)
	}
	return []float64{
		each(func() { sink = loaded.get(key) }, 2_000_000),
		each(func() { sink = loaded.rangeOf(part) }, 20_000),
	}, nil
}

// each returns microseconds of a call; the best of five.
func each(call func(), times int) float64 {
	best := time.Duration(1 << 62)
	for range 5 {
		began := time.Now()
		for range times {
			call()
		}
		best = min(best, time.Since(began))
	}
	return float64(best.Nanoseconds()) / float64(times) / 1e3
}

// measureCurrent returns milliseconds: each is behind a write outside of the prefix, so that only progress can tell.
func measureCurrent(client, other *clientv3.Client, count int) ([]float64, error) {
	loaded, err := load(client, "current/")
	if err != nil {
		return nil, err
	}
	defer loaded.stop()
	ctx := context.Background()
	taken := make([]float64, count)
	for i := range taken {
		if _, err := other.Put(ctx, "elsewhere", value); err != nil {
			return nil, err
		}
		began := time.Now()
		if err := loaded.waitCurrent(ctx); err != nil {
			return nil, err
		}
		taken[i] = float64(time.Since(began).Nanoseconds()) / 1e6
	}
	return taken, nil
}

// measureLag returns milliseconds from the answer of each put until the cache has it, at 1 000 puts a second.
func measureLag(client, other *clientv3.Client, count int) ([]float64, error) {
	loaded, err := load(client, "lag/")
	if err != nil {
		return nil, err
	}
	defer loaded.stop()
	loaded.lock.Lock()
	loaded.arrived = make(map[int64]time.Time)
	loaded.lock.Unlock()
	var lock sync.Mutex
	var puts sync.WaitGroup
	answered := make(map[int64]time.Time)
	failures := make(chan error, count)
	began := time.Now()
	for i := range count {
		puts.Add(1)
		go func() {
			defer puts.Done()
			put, err := other.Put(context.Background(), fmt.Sprintf("lag/%d", i%100), value)
			now := time.Now()
			if err != nil {
				failures <- err
				return
			}
			lock.Lock()
			answered[put.Header.Revision] = now
			lock.Unlock()
		}()
		time.Sleep(time.Until(began.Add(time.Duration(i+1) * time.Millisecond)))
	}
	puts.Wait()
	select {
	case err := <-failures:
		return nil, err
	default:
	}
	if err := loaded.waitCurrent(context.Background()); err != nil {
		return nil, err
	}
	loaded.lock.RLock()
	defer loaded.lock.RUnlock()
	lags := make([]float64, 0, count)
	for revision, at := range answered {
		arrived, isThere := loaded.arrived[revision]
		if !isThere {
			return nil, fmt.Errorf("revision %d has not arrived", revision)
		}
		lags = append(lags, float64(arrived.Sub(at).Nanoseconds())/1e6)
	}
	return lags, nil
}
