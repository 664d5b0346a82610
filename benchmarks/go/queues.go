// The client's queues: workers that put an item and take one, while others wait. ../recipes.py says what is measured.
package main

import (
	"context"
	"fmt"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	recipe "go.etcd.io/etcd/client/v3/experimental/recipes"
)

const priority = 100

// measureQueue runs one burst on a queue in which so many items wait.
func measureQueue(client *clientv3.Client, prefix, kind string, waiting, workers int, length time.Duration) (map[string]any, error) {
	name := fmt.Sprintf("%s%s/%d", prefix, kind, waiting)
	calls := make([]call, workers)
	for i := range calls {
		queue, urgent := recipe.NewQueue(client, name), recipe.NewPriorityQueue(client, name)
		put, take := queue.Enqueue, queue.Dequeue
		if kind == "priority" {
			put, take = func(value string) error { return urgent.Enqueue(value, priority) }, urgent.Dequeue
		}
		calls[i] = func(context.Context) (int, error) {
			if err := put("item"); err != nil {
				return 0, err
			}
			_, err := take()
			return 0, err
		}
	}
	return measure(calls, 0, 1, length)
}
