"""Requests, answers and events in the words of etcd's model of itself, as the reports of its tests have them. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, TypeAlias

from etcd_aio import Event, EventType, KeyValue

Json: TypeAlias = dict[str, Any]

SHORTEST_HASHED: Final = 20
"""Bytes: the model has longer values by their hash alone."""

COMPACTED: Final = "mvcc: required revision has been compacted"
FUTURE_REVISION: Final = "mvcc: required revision is a future revision"


def value_or_hash(value: str) -> Json:
    """A value as the model has it."""
    encoded = value.encode()
    if len(encoded) < SHORTEST_HASHED:
        return {"Value": value} if value else {}
    return {"Hash": fnv32a(encoded)}


def fnv32a(data: bytes) -> int:
    """The hash of a long value."""
    found = 0x811C9DC5
    for byte in data:
        found = (found ^ byte) * 0x01000193 & 0xFFFFFFFF
    return found


# Requests.


def options(start: str, end: str = "", limit: int = 0, keys_only: bool = False) -> Json:
    """The keys that are read."""
    return {"Start": start, "End": end, "Limit": limit, "KeysOnly": keys_only}


def read(keys: Json, revision: int = 0) -> Json:
    """A range."""
    return {"Type": "range", "Range": {**keys, "Revision": revision}}


def put(key: str, value: str, lease: int = 0) -> Json:
    """A put, as an operation of a txn."""
    return {"Type": "put-operation", "Put": {"Key": key, "Value": value_or_hash(value), "LeaseID": lease}}


def delete(key: str) -> Json:
    """A delete of one key, as an operation of a txn."""
    return {"Type": "delete-operation", "Delete": {"Key": key}}


def look(keys: Json) -> Json:
    """A range, as an operation of a txn."""
    return {"Type": "range-operation", "Range": keys}


def txn(then: Sequence[Json], conditions: Sequence[Json] = (), otherwise: Sequence[Json] = ()) -> Json:
    """A txn. The model has single puts and deletes as such, too."""
    parts = {"Conditions": conditions, "OperationsOnSuccess": then, "OperationsOnFailure": otherwise}
    return {"Type": "txn", "Txn": {name: list(part) for name, part in parts.items()}}


def unchanged(key: str, revision: int) -> Json:
    """The condition that a key has this revision; 0 says that there is no such key."""
    return {"Key": key, "ExpectedRevision": revision, "ExpectedVersion": 0}


def of_version(key: str, version: int) -> Json:
    """The condition that a key has this version, above 0."""
    return {"Key": key, "ExpectedRevision": 0, "ExpectedVersion": version}


def grant(lease: int) -> Json:
    """A lease is granted; 0 if the client has not learnt that it was, and so never uses it."""
    return {"Type": "leaseGrant", "LeaseGrant": {"LeaseID": lease}}


def revoke(lease: int) -> Json:
    """A lease is revoked, with its keys."""
    return {"Type": "leaseRevoke", "LeaseRevoke": {"LeaseID": lease}}


def compact(revision: int) -> Json:
    """The history before a revision is dropped."""
    return {"Type": "compact", "Compact": {"Revision": revision}}


def defragment() -> Json:
    """A member is defragmented."""
    return {"Type": "defragment", "Defragment": {}}


def is_read(request: Mapping[str, Any]) -> bool:
    """Whether a request changes nothing, so that one without an answer leaves no trace."""
    if request["Type"] != "txn":
        return bool(request["Type"] == "range")
    operations = request["Txn"]["OperationsOnSuccess"] + request["Txn"]["OperationsOnFailure"]
    return all(operation["Type"] == "range-operation" for operation in operations)


# Answers.


def key_value(kv: KeyValue, *, prefix: str = "", keys_only: bool = False) -> Json:
    """A key that was read; `prefix` is what a namespace has taken away."""
    shown = {} if keys_only else value_or_hash(kv.value.decode())
    key = prefix + kv.key.decode()
    return {"Key": key, "Value": shown, "ModRevision": kv.mod_revision, "Version": kv.version}


def found(kvs: Iterable[Json], count: int | None = None) -> Json:
    """The keys of a range."""
    shown = list(kvs)
    return {"KVs": shown, "Count": len(shown) if count is None else count}


def range_answer(kvs: Json, revision: int) -> Json:
    """The answer to a range."""
    return {"Range": kvs, "Revision": revision}


def result(deleted: int = 0) -> Json:
    """The result of a put or a delete."""
    return {"KVs": None, "Count": 0, "Deleted": deleted}


def txn_answer(results: Sequence[Json], revision: int, *, succeeded: bool = True) -> Json:
    """The answer to a txn."""
    return {"Txn": {"Failure": not succeeded, "Results": list(results)}, "Revision": revision}


def applied_at(revision: int = 0) -> Json:
    """The request was applied, and no more is known but its revision, if that is given."""
    return {"Persisted": True, "PersistedRevision": revision}


def client_error(text: str) -> Json:
    """The server has refused the request in a way that the model foresees."""
    return {"ClientError": text}


def failed(name: str) -> Json:
    """The request has failed; it may have been applied, or may be later."""
    return {"Error": name}


# Watches.


def watch_request(
    key: str, revision: int, *, is_prefix: bool = False, progress: bool = False, prev_kv: bool = False
) -> Json:
    """What a watch has asked for."""
    names = {"WithPrefix": is_prefix, "WithProgressNotify": progress, "WithPrevKV": prev_kv}
    return {"Key": key, "Revision": revision, **names}


def watch_event(event: Event, *, prefix: str = "") -> Json:
    """An event; `prefix` is what a namespace has taken away."""
    kv, is_put = event.kv, event.type is EventType.PUT
    shown: Json = {
        "Type": "put-operation" if is_put else "delete-operation",
        "Key": prefix + kv.key.decode(),
        "Value": value_or_hash(kv.value.decode()) if is_put else {},
        "Revision": kv.mod_revision,
        "IsCreate": is_put and kv.create_revision == kv.mod_revision,
    }
    if event.prev_kv is not None:
        before = key_value(event.prev_kv)
        del before["Key"]
        shown["PrevValue"] = before
    return shown


def watch_response(events: Sequence[Json], revision: int, time: int) -> Json:
    """A message of a watch; without events it is a report of progress."""
    return {"Events": list(events), "IsProgressNotify": not events, "Revision": revision, "Time": time}
