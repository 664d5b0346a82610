// The client's transactions as functions: workers that increment one key, each by concurrency.NewSTM. ../recipes.py says
// what is measured.
package main

import (
	"context"
	"fmt"
	"strconv"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
)

// measureSTM runs one burst of increments.
func measureSTM(client *clientv3.Client, prefix string, workers int, length time.Duration) (map[string]any, error) {
	key := fmt.Sprintf("%sstm/%d", prefix, time.Now().UnixNano())
	calls := make([]call, workers)
	for i := range calls {
		calls[i] = func(ctx context.Context) (int, error) {
			_, err := concurrency.NewSTM(client, func(tx concurrency.STM) error {
				value := 0
				if text := tx.Get(key); text != "" {
					var err error
					if value, err = strconv.Atoi(text); err != nil {
						return err
					}
				}
				tx.Put(key, strconv.Itoa(value+1))
				return nil
			}, concurrency.WithAbortContext(ctx))
			return 0, err
		}
	}
	return measure(calls, 0, 1, length)
}
