// Tests which writes without an answer are left out.
package main

import (
	"testing"

	"github.com/anishathalye/porcupine"

	"go.etcd.io/etcd/tests/v3/robustness/model"
	"go.etcd.io/etcd/tests/v3/robustness/report"
)

func TestLost(t *testing.T) {
	both := blind("a")
	both.Txn.OperationsOnSuccess = append(both.Txn.OperationsOnSuccess, remove().Txn.OperationsOnSuccess...)
	failed := model.MaybeEtcdResponse{Error: "no answer"}
	for name, test := range map[string]struct {
		request  model.EtcdRequest
		response model.MaybeEtcdResponse
		log      []model.EtcdRequest
		kept     int
	}{
		"in the log":       {blind("a"), failed, []model.EtcdRequest{blind("a")}, 1},
		"in no log":        {blind("a"), failed, []model.EtcdRequest{blind("b")}, 0},
		"with a delete":    {both, failed, []model.EtcdRequest{remove()}, 0},
		"a delete":         {remove(), failed, nil, 1},
		"answered, no log": {blind("a"), model.MaybeEtcdResponse{}, nil, 1},
	} {
		operations := []porcupine.Operation{{Input: test.request, Output: test.response}}
		kept := withoutLost([]report.ClientReport{{KeyValue: operations}}, test.log)
		if len(kept) != 1 || len(kept[0].KeyValue) != test.kept {
			t.Errorf("%s: %v", name, kept)
		}
	}
}
