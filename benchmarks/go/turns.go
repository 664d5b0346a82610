// The recipes of the client that hand something over from one to the next: Mutex, Election and RWMutex. As a load it
// speaks the protocol of ../drivers/turns.py; as a member of a queue it is told by stdin when to let go.
package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
	recipe "go.etcd.io/etcd/client/v3/experimental/recipes"
)

const (
	sessionTTL = 60 // seconds; the load is not about expiry
	lookEvery  = 2 * time.Millisecond
	// A process that waits uses less than a fifth of one core.
	idleAfter = 50 * time.Millisecond
	idleCPU   = idleAfter / 5
)

// turn is a mutex or a candidacy: taken, then given back.
type turn struct {
	session *concurrency.Session
	take    func(ctx context.Context) error
	give    func(ctx context.Context) error
	token   func() int64
}

func newTurn(client *clientv3.Client, kind, name, value string, ttl int) (*turn, error) {
	session, err := concurrency.NewSession(client, concurrency.WithTTL(ttl))
	if err != nil {
		return nil, err
	}
	return turnOf(session, kind, name, value), nil
}

func turnOf(session *concurrency.Session, kind, name, value string) *turn {
	if kind == "election" {
		election := concurrency.NewElection(session, name)
		return &turn{
			session,
			func(ctx context.Context) error { return election.Campaign(ctx, value) },
			election.Resign,
			election.Rev,
		}
	}
	if kind == "read" || kind == "write" {
		mutex := recipe.NewRWMutex(session, name)
		take, give := mutex.RLock, mutex.RUnlock
		if kind == "write" {
			take, give = mutex.Lock, mutex.Unlock
		}
		return &turn{
			session,
			func(context.Context) error { return take() },
			func(context.Context) error { return give() },
			func() int64 { return 0 },
		}
	}
	mutex := concurrency.NewMutex(session, name)
	return &turn{session, mutex.Lock, mutex.Unlock, func() int64 { return mutex.Header().Revision }}
}

// serveMember stands in one queue: it prints one line when it holds, and gives back at the next line of stdin, or at its
// end.
func serveMember(client *clientv3.Client, kind, name, value string, ttl int) error {
	own, err := newTurn(client, kind, name, value, ttl)
	if err != nil {
		return err
	}
	defer own.session.Close()
	if err := own.take(context.Background()); err != nil {
		return err
	}
	say(map[string]any{"holds": name, "lease": fmt.Sprintf("%x", own.session.Lease()), "token": own.token()})
	bufio.NewScanner(os.Stdin).Scan()
	if err := own.give(context.Background()); err != nil {
		return err
	}
	say(map[string]any{"released": name})
	return nil
}

// measureTurns runs one burst of turns; done is false if the operation is another one.
func measureTurns(client *clientv3.Client, prefix string, words []string) (map[string]any, bool, error) {
	contenders, _ := strconv.Atoi(words[2])
	seconds, _ := strconv.ParseFloat(words[3], 64)
	length := time.Duration(seconds * float64(time.Second))
	name := fmt.Sprintf("%s%s/%d", prefix, words[0], time.Now().UnixNano())
	switch words[0] {
	case "lock":
		answer, err := measureApart(client, name, contenders, length, true)
		return answer, true, err
	case "own-lock":
		answer, err := measureApart(client, name, contenders, length, false)
		return answer, true, err
	case "handoff":
		answer, err := measureHandoffs(client, "lock", name, contenders, length)
		return answer, true, err
	case "change":
		answer, err := measureHandoffs(client, "election", name, contenders, length)
		return answer, true, err
	}
	return nil, false, nil
}

// measureApart locks and unlocks names without contention: on one session of all, or each time on a new one.
func measureApart(client *clientv3.Client, name string, workers int, length time.Duration, isShared bool) (map[string]any, error) {
	shared, err := concurrency.NewSession(client, concurrency.WithTTL(sessionTTL))
	if err != nil {
		return nil, err
	}
	defer shared.Close()
	calls := make([]call, workers)
	for i := range calls {
		own := fmt.Sprintf("%s/%d", name, i)
		calls[i] = func(ctx context.Context) (int, error) {
			session := shared
			if !isShared {
				var err error
				if session, err = concurrency.NewSession(client, concurrency.WithTTL(sessionTTL)); err != nil {
					return 0, err
				}
				defer session.Close()
			}
			mutex := concurrency.NewMutex(session, own)
			if err := mutex.Lock(ctx); err != nil {
				return 0, err
			}
			return 0, mutex.Unlock(ctx)
		}
	}
	return measure(calls, 0, 1, length)
}

// measureHandoffs counts how often something is handed on, from one contender to the next. The time begins when all of
// them stand in line behind one that holds, and are idle; then it lets go. After its turn each stands in line again.
func measureHandoffs(client *clientv3.Client, kind, name string, contenders int, length time.Duration) (map[string]any, error) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	turns := make([]*turn, contenders+1)
	failures := make(chan error, len(turns))
	var opening sync.WaitGroup
	for i := range turns {
		opening.Add(1)
		go func() {
			defer opening.Done()
			var err error
			if turns[i], err = newTurn(client, kind, name, "", sessionTTL); err != nil {
				failures <- err
			}
		}()
	}
	opening.Wait()
	defer func() {
		var closing sync.WaitGroup
		for _, one := range turns {
			if one != nil {
				closing.Add(1)
				go func() { defer closing.Done(); one.session.Close() }()
			}
		}
		closing.Wait()
	}()
	select {
	case err := <-failures:
		return nil, err
	default:
	}
	gate := turns[contenders]
	if err := gate.take(ctx); err != nil {
		return nil, err
	}
	var once sync.Once
	var start time.Time
	var before time.Duration
	var answer map[string]any
	handed := 0 // only the holder writes it
	var workers sync.WaitGroup
	for _, own := range turns[:contenders] {
		workers.Add(1)
		go func() {
			defer workers.Done()
			for ctx.Err() == nil {
				if err := own.take(ctx); err != nil {
					if !errors.Is(ctx.Err(), context.Canceled) {
						failures <- err
						cancel()
					}
					return
				}
				handed++
				if elapsed := time.Since(start); elapsed >= length {
					once.Do(func() {
						answer = map[string]any{"calls": handed, "seconds": elapsed.Seconds(), "cpu": (cpuTime() - before).Seconds()}
					})
					cancel()
				}
				if err := own.give(context.Background()); err != nil {
					failures <- err
					cancel()
					return
				}
			}
		}()
	}
	for {
		found, err := client.Get(ctx, name+"/", clientv3.WithPrefix(), clientv3.WithCountOnly())
		if err != nil {
			return nil, err
		}
		if int(found.Count) > contenders {
			break
		}
		time.Sleep(lookEvery)
	}
	for busy := true; busy; {
		used := cpuTime()
		time.Sleep(idleAfter)
		busy = cpuTime()-used > idleCPU
	}
	start, before = time.Now(), cpuTime()
	if err := gate.give(ctx); err != nil {
		return nil, err
	}
	workers.Wait()
	select {
	case err := <-failures:
		return nil, err
	default:
		return answer, nil
	}
}
