// The official Go client under faults: an open loop, like ../failover/driver.py, which documents the protocol.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/status"
)

const (
	sampleEvery = 250 * time.Millisecond
	// If a call does not end within this time after its deadline, it counts as never ending.
	grace = 3 * time.Second
)

type order struct {
	Operation string  `json:"operation"`
	Start     float64 `json:"start"`
	Seconds   float64 `json:"seconds"`
	Rate      float64 `json:"rate"`
	Timeout   float64 `json:"timeout"`
	BurstAt   float64 `json:"burst_at"`
	Burst     int     `json:"burst"`
}

type outcome struct {
	Name   string
	Member uint64
}

// record is the outcome of one call; times are seconds after the start.
type record struct {
	slot, late, took float64
	outcome          outcome
}

type account struct {
	sync.Mutex
	records []record
	cpu     [][2]float64
	// Calls that have not ended, by number: their slots and when they were issued.
	open map[int][2]float64
}

func serveFailover(endpoints []string, prefix string) {
	client, err := clientv3.New(clientv3.Config{
		Endpoints:   endpoints,
		DialTimeout: 5 * time.Second,
		// The default is no keepalive. This is the lowest value that the client accepts, and etcdctl's.
		DialKeepAliveTime:    10 * time.Second,
		DialKeepAliveTimeout: 3 * time.Second,
	})
	if err != nil {
		say(map[string]any{"error": err.Error()})
		os.Exit(1)
	}
	defer client.Close()
	if err := warmUp(client, prefix); err != nil {
		say(map[string]any{"error": err.Error()})
		os.Exit(1)
	}
	say(map[string]any{"versions": versions()})
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		var told order
		if err := json.Unmarshal(lines.Bytes(), &told); err != nil {
			say(map[string]any{"error": err.Error()})
			continue
		}
		say(runOpenLoop(client, prefix, told))
	}
}

func warmUp(client *clientv3.Client, prefix string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	for range 50 {
		if _, err := client.Put(ctx, prefix+"get", value); err != nil {
			return err
		}
		if _, err := client.Get(ctx, prefix+"get"); err != nil {
			return err
		}
	}
	return nil
}

func runOpenLoop(client *clientv3.Client, prefix string, told order) map[string]any {
	wall := time.Unix(0, int64(told.Start*1e9))
	start := time.Now().Add(time.Until(wall))
	since := func() float64 { return time.Since(start).Seconds() }
	done := &account{open: map[int][2]float64{}}

	stop := make(chan struct{})
	var sampler sync.WaitGroup
	sampler.Add(1)
	go func() {
		defer sampler.Done()
		ticks := time.NewTicker(sampleEvery)
		defer ticks.Stop()
		for {
			done.Lock()
			done.cpu = append(done.cpu, [2]float64{since(), cpuTime().Seconds()})
			done.Unlock()
			select {
			case <-stop:
				return
			case <-ticks.C:
			}
		}
	}()

	var calls sync.WaitGroup
	number := 0
	issue := func(slot float64) {
		id := number
		number++
		issued := since()
		done.Lock()
		done.open[id] = [2]float64{slot, issued}
		done.Unlock()
		calls.Add(1)
		go func() {
			defer calls.Done()
			ended := attempt(client, prefix, told, id)
			took := since() - issued
			done.Lock()
			defer done.Unlock()
			if _, isOpen := done.open[id]; isOpen {
				delete(done.open, id)
				done.records = append(done.records, record{slot, issued - slot, took, ended})
			}
		}()
	}
	time.Sleep(time.Until(start))
	total := int(told.Rate * told.Seconds)
	for next := 0; next < total || told.Burst > 0; {
		now := since()
		if told.Burst > 0 && now >= told.BurstAt {
			for ; told.Burst > 0; told.Burst-- {
				issue(told.BurstAt)
			}
		}
		for ; next < total && float64(next)/told.Rate <= now; next++ {
			issue(float64(next) / told.Rate)
		}
		if next < total {
			time.Sleep(time.Duration((float64(next)/told.Rate - since()) * 1e9))
		}
	}
	if told.Rate == 0 {
		time.Sleep(time.Duration((told.Seconds - since()) * 1e9))
	}
	ended := make(chan struct{})
	go func() { calls.Wait(); close(ended) }()
	select {
	case <-ended:
	case <-time.After(time.Duration(told.Timeout*1e9) + grace):
	}
	close(stop)
	sampler.Wait()
	return done.answer(since())
}

func attempt(client *clientv3.Client, prefix string, told order, number int) outcome {
	ctx, cancel := context.WithTimeout(context.Background(), time.Duration(told.Timeout*1e9))
	defer cancel()
	if told.Operation == "put" {
		reply, err := client.Put(ctx, fmt.Sprintf("%sput/%03d", prefix, number%100), value)
		if err != nil {
			return outcome{Name: nameOf(err)}
		}
		return outcome{Name: "ok", Member: reply.Header.MemberId}
	}
	reply, err := client.Get(ctx, prefix+"get")
	if err != nil {
		return outcome{Name: nameOf(err)}
	}
	if len(reply.Kvs) != 1 || len(reply.Kvs[0].Value) != len(value) {
		return outcome{Name: "wrong answer"}
	}
	return outcome{Name: "ok", Member: reply.Header.MemberId}
}

// nameOf returns the name of an error, without details that differ from call to call.
func nameOf(err error) string {
	if errors.Is(err, context.DeadlineExceeded) {
		return "context deadline exceeded"
	}
	if found, ok := status.FromError(err); ok {
		message, _, _ := strings.Cut(found.Message(), ": dial")
		if strings.HasPrefix(message, "error reading from server") || strings.HasPrefix(message, "connection error") {
			message, _, _ = strings.Cut(message, ":")
		}
		return found.Code().String() + ": " + message
	}
	return err.Error()
}

// answer lists the calls column by column, including those that never ended. The client does not say whether a failed
// put was applied, hence null.
func (done *account) answer(now float64) map[string]any {
	done.Lock()
	defer done.Unlock()
	for _, began := range done.open {
		done.records = append(done.records, record{began[0], began[1] - began[0], now - began[1], outcome{Name: "never ended"}})
	}
	done.open = map[int][2]float64{}
	known := map[outcome]int{}
	outcomes := [][3]any{}
	slots, delays, durations, indices := []float64{}, []float64{}, []float64{}, []int{}
	for _, one := range done.records {
		index, ok := known[one.outcome]
		if !ok {
			index = len(outcomes)
			known[one.outcome] = index
			outcomes = append(outcomes, [3]any{one.outcome.Name, nil, one.outcome.Member})
		}
		slots, delays = append(slots, rounded(one.slot)), append(delays, rounded(one.late))
		durations, indices = append(durations, rounded(one.took)), append(indices, index)
	}
	return map[string]any{
		"outcomes": outcomes, "slot": slots, "late": delays, "took": durations, "outcome": indices,
		"cpu": done.cpu, "states": [][]any{},
	}
}

func rounded(seconds float64) float64 {
	return float64(int64(seconds*1e4+0.5)) / 1e4
}
