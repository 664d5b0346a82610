// Reads the members' logs: which writes stand in them, and a copy that etcd's own reader of reports understands.
package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"

	"go.uber.org/zap"
	"google.golang.org/protobuf/proto"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/server/v3/storage/datadir"
	"go.etcd.io/etcd/server/v3/storage/wal"
	"go.etcd.io/etcd/tests/v3/robustness/report"
	"go.etcd.io/raft/v3/raftpb"
)

// Place is where an entry stands in a log. Two members that have the same entry have it at the same place.
type Place struct{ index, term uint64 }

// Logs are the members' logs.
type Logs struct {
	judged string                        // the folder of the copies
	places map[string]map[Place]struct{} // by the mark of a write
}

func readLogs(folder string) (*Logs, error) {
	logs := &Logs{judged: filepath.Join(folder, "judged"), places: map[string]map[Place]struct{}{}}
	if err := os.RemoveAll(logs.judged); err != nil {
		return nil, err
	}
	members, err := filepath.Glob(filepath.Join(folder, "server-*"))
	if err != nil {
		return nil, err
	}
	for _, member := range members {
		state, entries, err := report.ReadWAL(zap.NewNop(), member)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", filepath.Base(member), err)
		}
		for _, entry := range entries {
			if err := logs.add(entry); err != nil {
				return nil, err
			}
		}
		if err := write(filepath.Join(logs.judged, filepath.Base(member)), state, entries); err != nil {
			return nil, err
		}
	}
	return logs, nil
}

// count tells in how many places a write stands.
func (l *Logs) count(mark string) int { return len(l.places[mark]) }

// add notes where the writes of an entry stand, and changes what etcd's reader of reports stops at.
func (l *Logs) add(entry *raftpb.Entry) error {
	if entry.GetType() != raftpb.EntryNormal || len(entry.Data) == 0 {
		return nil
	}
	var request pb.InternalRaftRequest
	if err := proto.Unmarshal(entry.Data, &request); err != nil {
		// etcd before 3.6 notes its members and its version by requests of version 2, whose bytes mean nothing here.
		// The reader leaves them out as well, but not with every error that they cause.
		if bytes.Contains(entry.Data, []byte("/0/members/")) || bytes.Contains(entry.Data, []byte("/0/version")) {
			entry.Data = nil
			return nil
		}
		return err
	}
	for _, mark := range marks(&request) {
		if l.places[mark] == nil {
			l.places[mark] = map[Place]struct{}{}
		}
		l.places[mark][Place{entry.GetIndex(), entry.GetTerm()}] = struct{}{}
	}
	switch {
	case request.Put != nil, request.DeleteRange != nil, request.LeaseRevoke != nil, request.LeaseGrant != nil:
	case request.ClusterMemberAttrSet != nil, request.ClusterVersionSet != nil, request.DowngradeInfoSet != nil:
	case request.Txn != nil, request.Compaction != nil:
	default:
		// Logins, changes of users, renewals, alarms: they change no key, and the reader does not know them.
		entry.Data = nil
	}
	return nil
}

// marks are the names of the writes in a request, as the writer of the report gives them.
func marks(request *pb.InternalRaftRequest) []string {
	switch {
	case request.Put != nil:
		return []string{"put:" + string(request.Put.Value)}
	case request.DeleteRange != nil:
		// A delete is told from others by the end of its range, in which there is its key alone.
		if rest, found := bytes.CutPrefix(request.DeleteRange.RangeEnd, append(bytes.Clone(request.DeleteRange.Key), 0)); found {
			return []string{"delete:" + string(rest)}
		}
	case request.LeaseGrant != nil:
		return []string{fmt.Sprintf("grant:%d", request.LeaseGrant.ID)}
	case request.LeaseRevoke != nil:
		return []string{fmt.Sprintf("revoke:%d", request.LeaseRevoke.ID)}
	case request.Compaction != nil:
		return []string{fmt.Sprintf("compact:%d", request.Compaction.Revision)}
	case request.Txn != nil:
		found := []string{}
		for _, op := range append(append([]*pb.RequestOp{}, request.Txn.Success...), request.Txn.Failure...) {
			if put := op.GetRequestPut(); put != nil {
				found = append(found, "put:"+string(put.Value))
			}
		}
		return found
	}
	return nil
}

// write makes a log of some entries.
func write(member string, state *raftpb.HardState, entries []*raftpb.Entry) error {
	folder := datadir.ToWALDir(member)
	if err := os.MkdirAll(filepath.Dir(folder), 0o700); err != nil {
		return err
	}
	wal.SegmentSizeBytes = 1 << 20 // it is allocated beforehand
	log, err := wal.Create(zap.NewNop(), folder, nil)
	if err != nil {
		return err
	}
	log.SetUnsafeNoFsync()
	if err := log.Save(state, entries); err != nil {
		return err
	}
	return log.Close()
}
