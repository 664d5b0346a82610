// Leaves out the writes of the client that had no answer and are in no member's log: they were never applied.
//
// etcd's validators leave such writes out as well, but for a transaction that also deletes a key: they take it to be
// in the log if any delete of that key is. Such a write fits behind the end of a history, so the verdict is the same,
// but to try it at each place before costs the judge minutes and gigabytes.
package main

import (
	"github.com/anishathalye/porcupine"

	"go.etcd.io/etcd/tests/v3/robustness/model"
	"go.etcd.io/etcd/tests/v3/robustness/report"
)

func withoutLost(reports []report.ClientReport, persisted []model.EtcdRequest) []report.ClientReport {
	logged := map[model.PutOptions]bool{}
	for _, request := range persisted {
		for _, put := range puts(request) {
			logged[put] = true
		}
	}
	isLost := func(operation porcupine.Operation) bool {
		written := puts(operation.Input.(model.EtcdRequest))
		if operation.Output.(model.MaybeEtcdResponse).Error == "" || len(written) == 0 {
			return false
		}
		for _, put := range written {
			if logged[put] {
				return false
			}
		}
		return true
	}
	kept := []report.ClientReport{}
	for _, one := range reports {
		operations := []porcupine.Operation{}
		for _, operation := range one.KeyValue {
			if !isLost(operation) {
				operations = append(operations, operation)
			}
		}
		one.KeyValue = operations
		kept = append(kept, one)
	}
	return kept
}

// puts are the keys and values that a transaction may write. Values are unlike each other.
func puts(request model.EtcdRequest) []model.PutOptions {
	found := []model.PutOptions{}
	if request.Type == model.Txn {
		for _, operation := range request.Txn.AllOperations() {
			if operation.Type == model.PutOperation {
				found = append(found, model.PutOptions{Key: operation.Put.Key, Value: operation.Put.Value})
			}
		}
	}
	return found
}
