// Leaves out the copies in a log that changed nothing, as exactly-once writes have them.
//
// To know when an unanswered write was applied at the latest, etcd's validators take each write of a client to stand in
// the log once: what stands before it was done when the client had its answer. A copy that comes later than the answer
// would have everything between the two end too early. Only copies that changed nothing are left out, so a write
// that was applied twice stays one that was applied twice.
package main

import (
	"encoding/json"

	"go.etcd.io/etcd/tests/v3/robustness/model"
)

func withoutIdleCopies(persisted []model.EtcdRequest) ([]model.EtcdRequest, error) {
	state, err := model.NewReplay(persisted).StateForRevision(1)
	if err != nil {
		return nil, err
	}
	kept, seen := make([]model.EtcdRequest, 0, len(persisted)), map[string]bool{}
	for _, request := range persisted {
		next, _ := state.Step(request)
		// A put has a value that no other has, so an equal transaction with a put is a copy.
		if len(puts(request)) > 0 {
			text, err := json.Marshal(request)
			if err != nil {
				return nil, err
			}
			if seen[string(text)] && next.Revision == state.Revision {
				continue
			}
			seen[string(text)] = true
		}
		kept, state = append(kept, request), next
	}
	return kept, nil
}
