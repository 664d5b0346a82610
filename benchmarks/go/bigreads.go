// Large reads over TLS beside a watch and a lease, on one client: ../big_reads.py says what is measured, and puts.
package main

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

const (
	bigReaders  = 10
	bigLeaseTTL = 5
)

func withAuthority(path string) (*tls.Config, error) {
	pem, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("no certificate in %s", path)
	}
	return &tls.Config{RootCAs: pool}, nil
}

// serveBigReads reads until a line on stdin says which put was the last; then it has some seconds for its event.
func serveBigReads(client *clientv3.Client) error {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	lease, err := client.Grant(ctx, bigLeaseTTL)
	if err != nil {
		return err
	}
	renewals, err := client.KeepAlive(ctx, lease.ID)
	if err != nil {
		return err
	}
	go func() {
		for range renewals {
		}
	}()
	var lock sync.Mutex
	latencies := []float64{}
	seen := 0
	watch := client.Watch(ctx, "small/", clientv3.WithPrefix(), clientv3.WithCreatedNotify())
	<-watch
	go func() {
		for reply := range watch {
			now := time.Now().UnixNano()
			lock.Lock()
			for _, event := range reply.Events {
				words := strings.Fields(string(event.Kv.Value))
				number, _ := strconv.Atoi(words[0])
				sent, _ := strconv.ParseInt(words[1], 10, 64)
				if number == seen { // a lost one is never caught up
					seen++
				}
				latencies = append(latencies, float64(now-sent)/1e9)
			}
			lock.Unlock()
		}
	}()
	var reads atomic.Int64
	var readers sync.WaitGroup
	var isOver atomic.Bool
	failures := make(chan error, bigReaders)
	before := cpuTime()
	for range bigReaders {
		readers.Add(1)
		go func() {
			defer readers.Done()
			for !isOver.Load() {
				found, err := client.Get(ctx, "big/", clientv3.WithPrefix())
				if err == nil && len(found.Kvs) != 10 {
					err = fmt.Errorf("read %d keys", len(found.Kvs))
				}
				if err != nil {
					failures <- err
					return
				}
				reads.Add(1)
			}
		}()
	}
	say(map[string]any{"ready": true})
	lines := bufio.NewScanner(os.Stdin)
	lines.Scan()
	last, err := strconv.Atoi(strings.TrimSpace(lines.Text()))
	if err != nil {
		return err
	}
	isOver.Store(true)
	readers.Wait()
	cpu := cpuTime() - before
	select {
	case err := <-failures:
		return err
	default:
	}
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		lock.Lock()
		done := seen == last
		lock.Unlock()
		if done {
			break
		}
	}
	left, err := client.TimeToLive(ctx, lease.ID)
	if err != nil {
		return err
	}
	lock.Lock()
	defer lock.Unlock()
	say(map[string]any{
		"latencies": latencies, "seen": seen, "reads": reads.Load(), "cpu": cpu.Seconds(), "lives": left.TTL > 0,
	})
	return nil
}
