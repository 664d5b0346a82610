// Tests which copies in a log are left out.
package main

import (
	"reflect"
	"testing"

	"go.etcd.io/etcd/tests/v3/robustness/model"
)

func once(marker int64, value string) model.EtcdRequest {
	return model.EtcdRequest{Type: model.Txn, Txn: &model.TxnRequest{
		Conditions: []model.EtcdCondition{{Key: "marker", ExpectedRevision: marker}},
		OperationsOnSuccess: []model.EtcdOperation{
			{Type: model.PutOperation, Put: model.PutOptions{Key: "key", Value: model.ToValueOrHash(value)}},
			{Type: model.PutOperation, Put: model.PutOptions{Key: "marker", Value: model.ToValueOrHash(value)}},
		},
	}}
}

func remove() model.EtcdRequest {
	return model.EtcdRequest{Type: model.Txn, Txn: &model.TxnRequest{OperationsOnSuccess: []model.EtcdOperation{
		{Type: model.DeleteOperation, Delete: model.DeleteOptions{Key: "other"}},
	}}}
}

func blind(value string) model.EtcdRequest {
	request := once(0, value)
	request.Txn.Conditions = nil
	return request
}

func TestCopies(t *testing.T) {
	for name, test := range map[string]struct{ log, kept []model.EtcdRequest }{
		"an idle copy":             {[]model.EtcdRequest{once(0, "a"), once(2, "b"), once(0, "a")}, []model.EtcdRequest{once(0, "a"), once(2, "b")}},
		"a copy that was applied":  {[]model.EtcdRequest{blind("a"), blind("a")}, []model.EtcdRequest{blind("a"), blind("a")}},
		"equal deletes":            {[]model.EtcdRequest{remove(), remove()}, []model.EtcdRequest{remove(), remove()}},
		"one that changed nothing": {[]model.EtcdRequest{once(9, "a")}, []model.EtcdRequest{once(9, "a")}},
	} {
		kept, err := withoutIdleCopies(test.log)
		if err != nil || !reflect.DeepEqual(kept, test.kept) {
			t.Errorf("%s: kept %d of %d, %v", name, len(kept), len(test.log), err)
		}
	}
}
