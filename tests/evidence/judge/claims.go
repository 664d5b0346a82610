// Holds what the client said about its writes, and what it read at known revisions, against the members' logs.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"

	"go.etcd.io/etcd/tests/v3/robustness/model"
)

// Claim is what the client said about a write.
type Claim struct {
	Mark string // its name, by which it is found in a log
	Told string // "applied", "not applied", "refused" by the server for its content, or "unknown"
	Once bool   // copies of it may stand in the log, of which one is applied: an exactly-once write
	Free bool   // copies of it are harmless, and allowed: a grant or a revocation
	// Revision is that of the change, if the client named one.
	Revision int64
}

// Snapshot is a state that the client has shown, of a revision that it has named.
type Snapshot struct {
	Kind     string
	Request  model.RangeOptions
	Revision int64
	Floor    int64 // the newest revision that it must not be older than
	Response model.RangeResponse
}

// Claims are all of a report.
type Claims struct {
	Writes    []Claim
	Snapshots []Snapshot
}

func loadClaims(folder string) (*Claims, error) {
	data, err := os.ReadFile(filepath.Join(folder, "claims.json"))
	if err != nil {
		return nil, err
	}
	claims := &Claims{}
	return claims, json.Unmarshal(data, claims)
}

// check adds the rules that were broken, each with its first example.
func (v *Verdict) check(claims *Claims, logs *Logs, persisted []model.EtcdRequest) {
	v.Told = map[string]int{}
	replay := model.NewReplay(persisted)
	applied := map[model.ValueOrHash]int{}
	appliedAt := map[model.ValueOrHash]int64{}
	for _, event := range replay.Events {
		if event.Type == model.PutOperation {
			applied[event.Value]++
			appliedAt[event.Value] = event.Revision
		}
	}
	broken := map[string]string{}
	breaks := func(rule string, example string) {
		if _, found := broken[rule]; !found {
			broken[rule] = example
			v.Broken = append(v.Broken, rule+": "+example)
		}
	}
	for _, claim := range claims.Writes {
		v.Told[claim.Told]++
		if claim.Once {
			v.Once++
		}
		places := logs.count(claim.Mark)
		value, isPut := strings.CutPrefix(claim.Mark, "put:")
		times := applied[model.ToValueOrHash(value)]
		if places > 1 {
			v.Repeated++
		}
		switch {
		case claim.Told == "applied" && places == 0:
			breaks("told as applied, in no log", claim.Mark)
		case claim.Told == "not applied" && !claim.Once && places > 0:
			breaks("told as not applied, in a log", claim.Mark)
		case claim.Told == "not applied" && claim.Once && times > 0:
			breaks("told as not applied, but applied", claim.Mark)
		case claim.Told == "refused" && isPut && times > 0:
			breaks("told as refused, but applied", claim.Mark)
		}
		if places > 1 && !claim.Once && !claim.Free {
			breaks("twice in the log", claim.Mark)
		}
		if isPut && times > 1 {
			breaks("applied twice", claim.Mark)
		}
		if claim.Once && claim.Told == "applied" && times != 1 {
			breaks("told as applied once, but not applied once", fmt.Sprintf("%s, applied %d times", claim.Mark, times))
		}
	}
	// After all that, since a write that was applied twice has two revisions.
	for _, claim := range claims.Writes {
		value, isPut := strings.CutPrefix(claim.Mark, "put:")
		if at := appliedAt[model.ToValueOrHash(value)]; isPut && at > 0 && claim.Revision > 0 && at != claim.Revision {
			breaks("told of another revision", fmt.Sprintf("%s, told of %d, applied at %d", claim.Mark, claim.Revision, at))
		}
	}
	v.Snapshots = len(claims.Snapshots)
	for _, snapshot := range claims.Snapshots {
		where := fmt.Sprintf("%s at revision %d", snapshot.Kind, snapshot.Revision)
		if snapshot.Revision < snapshot.Floor {
			breaks("older than what was seen before", where)
		}
		state, err := replay.StateForRevision(snapshot.Revision)
		if err != nil {
			breaks("a revision that never was", where)
			continue
		}
		_, expected := state.Step(model.EtcdRequest{Type: model.Range, Range: &model.RangeRequest{RangeOptions: snapshot.Request}})
		if !reflect.DeepEqual(*expected.Range, snapshot.Response) {
			breaks("not the state of its revision", where)
		}
	}
}
